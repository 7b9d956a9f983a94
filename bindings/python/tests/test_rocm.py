"""origami_gemm.rocm as the callers of AMD's package call it, against the numbers of AMD's code and the command line."""

import contextlib
import csv
import gzip
import io
import itertools
import json
import subprocess
import sys
import types
import unittest
import unittest.mock

import origami_gemm.rocm as origami
from origami_gemm import Error
from tests.test_lib import CHECKOUT, CLI, setUpModule  # noqa: F401

GOLDEN = CHECKOUT / "plugins/amd-ref/amd-origami/testdata/golden"
DEVICES = {"gfx942": "mi300x", "gfx950": "mi355x", "gfx90a": "mi210"}
MN, K = (16, 32, 64, 128, 256), (16, 32, 64, 128, 256, 512)


def tiles(mi, occupancy=1, grid="data_parallel", sizes=tuple(itertools.product(MN, MN, K))):
    configs = []
    for size in sizes:
        config = origami.config_t()
        config.mt, config.mi, config.occupancy = origami.dim3_t(*size), origami.dim3_t(*mi), occupancy
        config.grid_selection = origami.grid_selection_t[grid]
        configs.append(config)
    return configs


def product(m, n, k, dtype="f16", a="T", b="N", batch=1):
    problem = origami.problem_t()
    problem.size, problem.batch = origami.dim3_t(m, n, k), batch
    problem.a_transpose, problem.b_transpose = origami.transpose_t[a], origami.transpose_t[b]
    problem.a_dtype = problem.b_dtype = problem.c_dtype = problem.d_dtype = origami.string_to_datatype(dtype)
    problem.mi_dtype = problem.a_dtype
    return problem


class Golden(unittest.TestCase):
    """Every ranking in the files that AMD's code wrote."""

    def test_rankings(self):
        with gzip.open(GOLDEN / "amd_candidates.csv.gz", "rt") as file:
            mi = {}
            for row in csv.DictReader(file):
                mi[row["set"], row["arch"], row["dtype"]] = tuple(int(row[f"MI_{axis}"]) for axis in "MNK")
        with open(GOLDEN / "amd_selected.csv") as file:
            rows = list(csv.DictReader(file))
        self.assertGreater(len(rows), 200)
        key = ("set", "arch", "dtype", "M", "N", "K", "batch", "transA", "transB", "occupancy", "grid_mode")
        for name, group in itertools.groupby(rows, key=lambda row: tuple(row[one] for one in key)):
            with self.subTest(name):
                first, *_ = group = list(group)
                hardware = origami.get_hardware(DEVICES[first["arch"]])
                problem = product(*(int(first[axis]) for axis in "MNK"), first["dtype"], first["transA"],
                                  first["transB"], int(first["batch"]))
                configs = tiles(mi[name[:3]], int(first["occupancy"]), first["grid_mode"])
                ranked = origami.rank_configs(problem, hardware, configs)
                self.assertEqual(len(ranked), int(first["n_valid"]))
                for row, result in zip(group, ranked):
                    mt = result.config.mt
                    self.assertEqual((mt.m, mt.n, mt.k), tuple(int(row[f"MT_{axis}"]) for axis in "MNK"))
                    self.assertEqual(result.latency, float(row["latency"]))
                    mapping = origami.select_workgroup_mapping(problem, hardware, result.config, hardware.N_CU)
                    self.assertEqual(mapping, tuple(int(row[f"wgm_feb_{one}"]) for one in ("chunk", "xcc"))
                                     + (int(row["wgm_feb"]),))

    def test_mappings_of_other_grids(self):
        with gzip.open(GOLDEN / "amd_wgm_units.csv.gz", "rt") as file:
            rows = list(csv.DictReader(file))
        rows = [row for row in rows if row["arch"] == "gfx942" and row["batch"] == "1" and row["grid"] != "304"][:60]
        self.assertGreater(len(rows), 20)
        for row in rows:
            with self.subTest(row):
                config = tiles((16, 16, 16), sizes=[(int(row["MT_M"]), int(row["MT_N"]), 512)])[0]
                problem = product(int(row["M"]), int(row["N"]), int(row["K"]))
                hardware = origami.get_hardware("mi300x")
                got = origami.select_workgroup_mapping(problem, hardware, config, int(row["grid"]))
                self.assertEqual(got, tuple(int(row[f"feb_{one}"]) for one in ("chunk", "xcc", "wgm")))


class Guide(unittest.TestCase):
    def test_the_example_prints_what_the_page_says(self):
        text = (CHECKOUT / "docs/rocm.md").read_text()
        code = text.split("```python\n")[1].split("```")[0]
        wanted = text.split("```\n")[2]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/rocm.md", "exec"), {})
        self.assertEqual(printed.getvalue(), wanted)


class Callers(unittest.TestCase):
    """What programs do that import AMD's package."""

    def test_as_tritonblas(self):
        """A changed device, tiles that are filtered, a result that is changed, and a mapping that is unpacked."""
        hardware = origami.get_hardware("mi300x")
        self.assertEqual(hardware.arch.name, "gfx942")
        hardware.N_CU = 304
        configs = [c for c in tiles((16, 16, 16), grid="k_split_aware")
                   if origami.check_lds_capacity(hardware, c.mt, origami.data_type_t.Half, origami.data_type_t.Half)]
        self.assertEqual(len(configs), 104)
        problem = product(4096, 4096, 4096)
        result = origami.select_config(problem, hardware, configs)
        mine = next(c for c in configs if c.mt == result.config.mt)
        result.config.mt.m = 512
        self.assertNotEqual(mine.mt.m, 512)
        self.assertEqual(result.config.occupancy, 1)
        mapping = origami.select_workgroup_mapping(problem, hardware, mine, hardware.N_CU)
        _, xcc, wgm = mapping
        self.assertEqual((xcc, wgm), (mapping.wgmxcc, mapping.wgm))
        self.assertEqual(hardware.NUM_XCD * hardware.CU_per_L2, 304)
        grid = origami.select_grid_size(problem, hardware, mine, origami.grid_selection_t.data_parallel, hardware.N_CU)
        self.assertEqual(grid, -(-4096 // mine.mt.m) * -(-4096 // mine.mt.n))

    def test_as_tracelens(self):
        """A device by its architecture, in two forms, and a time from a latency."""
        named = origami.get_hardware_for_arch(arch=origami.architecture_t.gfx942, N_CU=304, lds_capacity=64 << 10,
                                              L2_capacity=4 << 20, compute_clock_khz=1207 * 1000)
        self.assertEqual(named, origami.get_hardware_for_arch("gfx942", 304, 64 << 10, 4 << 20, 1207000))
        register_file = origami.get_hardware_for_arch("gfx942", 304, 64 << 10, 512 << 10, 4 << 20, 1207000)
        self.assertEqual(register_file, named)
        # 17 TB/s of the L2 at 1.207 GHz; the memory clock is the clock ÷ 1.5.
        self.assertAlmostEqual(named.mem1_perf_ratio, 17e12 / 1.207e9)
        self.assertAlmostEqual(named.mem3_perf_ratio, 4e12 / (1.207e9 / 1.5))
        problem = product(8192, 8192, 8192, "bf16", "N", "N")
        result = origami.select_config(problem, named, tiles((16, 16, 16)))
        microseconds = result.latency / (named.compute_clock_ghz * 1e3)
        self.assertTrue(500 < microseconds < 5000, microseconds)
        rate = origami.compute_perf_gflops(named, problem, result.latency)
        self.assertAlmostEqual(rate, 2 * 8192**3 / (microseconds * 1e3))
        self.assertEqual(origami.compute_total_latency(problem, named, result.config), result.latency)
        faster = origami.get_hardware_for_arch("gfx942", 304, 64 << 10, 4 << 20, 2100000)
        self.assertNotEqual(origami.select_config(problem, faster, tiles((16, 16, 16))).latency, result.latency)

    def test_as_inductor(self):
        """The package under AMD's name, and the best few."""
        with unittest.mock.patch.dict(sys.modules, {"origami": origami}):
            import origami as package
            hardware = package.get_hardware("mi355x")
            configs = tiles((16, 16, 32))
            for i, config in enumerate(configs):
                config.index = i
            few = package.select_topk_configs(product(2048, 2048, 2048), hardware, configs, 5)
            every = package.rank_configs(product(2048, 2048, 2048), hardware, configs, package.model_t.gemm)
        self.assertEqual(few, every[:5])
        self.assertEqual([configs[r.config.index].mt for r in few], [r.config.mt for r in few])
        self.assertEqual(package.select_config_mnk(2048, 2048, 2048, hardware, configs), every[0])

    def test_several_kinds_of_kernels(self):
        """One list with two instructions and occupancies: the latencies are those of each kind alone."""
        hardware, problem = origami.get_hardware("mi300x"), product(1024, 4096, 4096)
        kinds = [tiles((16, 16, 16)), tiles((32, 32, 8), 2)]
        apart = sorted(r.latency for kind in kinds for r in origami.rank_configs(problem, hardware, kind))
        together = origami.rank_configs(problem, hardware, kinds[0] + kinds[1])
        self.assertEqual(sorted(r.latency for r in together), apart)
        self.assertLess(together[0].latency, apart[0] * 1.01)
        twice = origami.rank_configs(problem, hardware, kinds[0] + kinds[0])
        self.assertEqual(len(twice), 2 * len(origami.rank_configs(problem, hardware, kinds[0])))

    def test_this_machine(self):
        properties = types.SimpleNamespace(gcnArchName="gfx942:sramecc+:xnack-", name="AMD Instinct MI325X",
                                           multi_processor_count=304)
        torch = types.SimpleNamespace(version=types.SimpleNamespace(hip="7.0"),
                                      cuda=types.SimpleNamespace(get_device_properties=lambda index: properties))
        with unittest.mock.patch.dict(sys.modules, {"torch": torch}):
            self.assertEqual(origami.get_hardware_for_device(0), origami.get_hardware("gfx942@mi325x"))
            properties.name, properties.multi_processor_count = "AMD Radeon Graphics", 80
            self.assertEqual(origami.get_hardware_for_device(0).N_CU, 80)
            properties.gcnArchName = "gfx1100"
            with self.assertRaisesRegex(Error, "gfx1100"):
                origami.get_hardware_for_device(0)
        driver = types.SimpleNamespace(name=lambda index: "NVIDIA H200")
        with unittest.mock.patch("origami_gemm._cuda.Driver", lambda: driver):
            self.assertEqual(origami.get_hardware_for_device(0).arch.name, "sm90")
        with unittest.mock.patch("origami_gemm._cuda.Driver", side_effect=OSError("no libcuda")):
            with self.assertRaises(RuntimeError):  # what AMD's package raises
                origami.get_hardware_for_device(0)


class NVIDIA(unittest.TestCase):
    def test_as_the_command(self):
        hardware = origami.get_hardware("h200")
        self.assertEqual((hardware.N_CU, hardware.arch.name, hardware.lds_capacity), (132, "sm90", 232448))
        ranked = origami.rank_configs(product(4096, 2048, 1024), hardware, tiles((16, 16, 16)))
        said = subprocess.run(
            [CLI, "--in-process", "--arch", "h200", "--model", "reference", "rank", "-m", "4096", "-n", "2048",
             "-k", "1024", "--trans-b", "--top", "5", "--json"], capture_output=True, text=True, check=True)
        for line, result in zip(said.stdout.splitlines(), ranked):
            answer = json.loads(line)
            mt = result.config.mt
            self.assertEqual([mt.m, mt.n, mt.k], [answer["config"][f"block_{axis}"] for axis in "mnk"])
            self.assertEqual(result.latency, answer["predicted"]["cycles"])
        mapping = origami.select_workgroup_mapping(product(4096, 2048, 1024), hardware, ranked[0].config, 132)
        self.assertEqual(mapping, (0, 1, json.loads(said.stdout.splitlines()[0])["config"]["group_m"]))
        slow = origami.get_hardware("h200")
        slow.N_CU = 66
        self.assertGreater(origami.select_config(product(8192, 8192, 8192), slow, tiles((16, 16, 16))).latency,
                           origami.select_config(product(8192, 8192, 8192), hardware, tiles((16, 16, 16))).latency)


class Refused(unittest.TestCase):
    """Errors are RuntimeErrors of one line, as callers expect."""

    def test_errors(self):
        hardware, problem, configs = origami.get_hardware("mi300x"), product(512, 512, 512), tiles((16, 16, 16))

        def changed(what, **fields):
            for name, value in fields.items():
                setattr(what, name, value)
            return what

        hinted = changed(tiles((16, 16, 16))[0], cache_hints_a=4)
        simulated = changed(tiles((16, 16, 16))[0], prediction_mode=origami.prediction_modes_t.simulation)
        for text, call in {
            "cache hints": lambda: origami.select_config(problem, hardware, [hinted]),
            "no configurations": lambda: origami.select_config(problem, hardware, []),
            "one type of both": lambda: origami.select_config(
                changed(product(1, 1, 1), b_dtype=origami.data_type_t.BFloat16), hardware, configs),
            "no Double": lambda: origami.select_config(
                changed(product(1, 1, 1), a_dtype=origami.data_type_t.Double, b_dtype=origami.data_type_t.Double),
                hardware, configs),
            "scales of blocks": lambda: origami.select_config(
                changed(product(1, 1, 1), a_mx_block_size=32), hardware, configs),
            "attention": lambda: origami.rank_configs(problem, hardware, configs, origami.model_t.attention),
            "whole number": lambda: origami.select_topk_configs(problem, hardware, configs, -1),
            "mt.m": lambda: origami.select_config(problem, hardware, [origami.config_t()]),
            "7x7x7": lambda: origami.select_config(problem, hardware, tiles((7, 7, 7))),
            "analytical": lambda: origami.select_config(problem, hardware, tiles((16, 16, 16), grid="analytical")),
            "simulation": lambda: origami.select_config(
                problem, hardware, [simulated]),
            "gfx1201": lambda: origami.get_hardware_for_arch("gfx1201", 64, 65536, 4 << 20, 2500000),
            "rf_capacity": lambda: origami.get_hardware_for_arch("gfx942", 304, 65536, 4 << 20),
            "'f17' is no type": lambda: origami.string_to_datatype("f17"),
            "unknown architecture|no device": lambda: origami.get_hardware("mi9000"),
            "max_cus": lambda: origami.compute_total_latency(problem, hardware, configs[0], 7),
        }.items():
            with self.subTest(text), self.assertRaisesRegex(RuntimeError, text) as caught:
                call()
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(AttributeError, "workgroup_maping"):
            origami.config_t().workgroup_maping = 7

    def test_types(self):
        for name in ("f16", "bf16", "f32", "xf32", "f8", "bf8", "i8", "f4"):
            origami.datatype_to_string(origami.string_to_datatype(name))
        self.assertEqual(origami.datatype_to_bits(origami.data_type_t.Float4), 4)


if __name__ == "__main__":
    unittest.main()
