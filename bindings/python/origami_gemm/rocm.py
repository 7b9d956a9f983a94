"""AMD's Origami Python package, by its names, without ROCm and without a GPU: docs/rocm.md.

    import origami_gemm.rocm as origami

    hardware = origami.get_hardware("mi300x")          # get_hardware_for_device(0) on a machine that has one
    problem = origami.problem_t()
    problem.size = origami.dim3_t(4096, 4096, 4096)
    result = origami.select_config(problem, hardware, configs)

The models are origami's reference models: amd-origami for AMD's GPUs, tritonblas for NVIDIA's.
"""

from __future__ import annotations

import enum
import functools
import sys
import typing

from origami_gemm import lib
from origami_gemm._arguments import shown, whole
from origami_gemm.errors import Error

architecture_t = enum.Enum("architecture_t", ["gfx90a", "gfx942", "gfx950", "sm80", "sm86", "sm89", "sm90", "sm120"])
transpose_t = enum.Enum("transpose_t", ["T", "N"])
model_t = enum.Enum("model_t", ["gemm", "attention"])
reduction_t = enum.Enum("reduction_t", ["none", "Spinlock", "Tree", "Parallel", "Atomic"])
prediction_modes_t = enum.Enum("prediction_modes_t", ["estimation", "simulation"])
grid_selection_t = enum.Enum("grid_selection_t", [
    "number_of_cus", "min_resources", "energy_aware", "reduction_cost_aware", "data_parallel", "analytical",
    "k_split_aware"])

# The name, the bits, what string_to_datatype() calls it, and origami's type. A type without one has no model here.
_TYPES = {
    "Float": (32, "f32", "fp32"), "ComplexFloat": (64, "c32", None), "ComplexDouble": (128, "c64", None),
    "Double": (64, "f64", None), "Half": (16, "f16", "fp16"), "Int32": (32, "i32", "int32"),
    "BFloat16": (16, "bf16", "bf16"), "Int8": (8, "i8", "int8"), "Int4": (4, "i4", None), "Int64": (64, None, None),
    "XFloat32": (32, "xf32", "tf32"), "Float8_fnuz": (8, None, "fp8"), "BFloat8_fnuz": (8, None, "fp8_e5m2"),
    "Float8": (8, "f8", "fp8"), "BFloat8": (8, "bf8", "fp8_e5m2"),
    "Float6": (6, "f6", None), "BFloat6": (6, "bf6", None), "Float4": (4, "f4", None),
}
data_type_t = enum.Enum("data_type_t", list(_TYPES))
_BY_STRING = {text: data_type_t[name] for name, (_, text, _) in _TYPES.items() if text}


def datatype_to_bits(dtype: data_type_t) -> int:
    """The bits of an element."""
    return _TYPES[dtype.name][0]


def string_to_datatype(text: str) -> data_type_t:
    """The type of a name such as "f16", "bf16" or "f8"."""
    if text not in _BY_STRING:
        raise Error(f"{shown(text)} is no type; use one of {', '.join(_BY_STRING)}")
    return _BY_STRING[text]


def datatype_to_string(dtype: data_type_t) -> str:
    """The name of a type, such as "Half"."""
    return dtype.name


class _Record:
    """A struct whose fields are set one by one. A field that it does not have is refused: it would change nothing."""

    def __setattr__(self, name, value):
        if name not in self._fields:
            raise AttributeError(f"{type(self).__name__} has no field {name}; it has {', '.join(self._fields)}")
        object.__setattr__(self, name, value)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def __eq__(self, other):
        return type(self) is type(other) and all(getattr(self, f) == getattr(other, f) for f in self._fields)

    __hash__ = None


class dim3_t(_Record):
    """Sizes along M, N and K."""

    _fields = ("m", "n", "k")

    def __init__(self, m: int, n: int, k: int):
        self.m, self.n, self.k = m, n, k

    def mn(self) -> int:
        return self.m * self.n

    def mk(self) -> int:
        return self.m * self.k

    def nk(self) -> int:
        return self.n * self.k

    def mnk(self) -> int:
        return self.m * self.n * self.k


class problem_t(_Record):
    """C = A B. With a_transpose T, A is contiguous along K, with N along M. With b_transpose N, B is contiguous along
    K, with T along N."""

    _fields = ("size", "batch", "a_transpose", "b_transpose", "a_dtype", "b_dtype", "c_dtype", "d_dtype", "mi_dtype",
               "a_mx_block_size", "b_mx_block_size")

    def __init__(self):
        self.size, self.batch = dim3_t(0, 0, 0), 1
        self.a_transpose, self.b_transpose = transpose_t.T, transpose_t.N
        self.a_dtype = self.b_dtype = self.c_dtype = self.d_dtype = self.mi_dtype = data_type_t.Half
        self.a_mx_block_size = self.b_mx_block_size = 0


class config_t(_Record):
    """A kernel: its tile mt, its matrix instruction mi, and how it is launched. index is the caller's own. The models
    do not read workgroup_mapping, the workspace, the reduction and the vector widths."""

    _fields = ("mt", "mi", "occupancy", "workgroup_mapping", "cache_hints_a", "cache_hints_b", "workspace_size",
               "workspace_size_per_elem_c", "reduction_strategy", "grid_selection", "prediction_mode",
               "hand_optimized_main_loop", "subtile", "grvw_a", "grvw_b", "gwvw_d", "vector_width_a", "vector_width_b",
               "index")

    def __init__(self):
        self.mt, self.mi = dim3_t(0, 0, 0), dim3_t(0, 0, 0)
        self.occupancy, self.workgroup_mapping, self.index = -1, 0, 0
        self.cache_hints_a = self.cache_hints_b = self.workspace_size = self.workspace_size_per_elem_c = 0
        self.reduction_strategy, self.grid_selection = reduction_t.none, grid_selection_t.k_split_aware
        self.prediction_mode, self.hand_optimized_main_loop, self.subtile = prediction_modes_t.estimation, False, False
        self.grvw_a = self.grvw_b = self.gwvw_d = self.vector_width_a = self.vector_width_b = 1

    def _copy(self):
        """A copy with a tile of its own: callers change the tile of a result."""
        other = config_t.__new__(config_t)
        other.__dict__.update(self.__dict__, mt=dim3_t(self.mt.m, self.mt.n, self.mt.k))
        return other


class prediction_result_t(typing.NamedTuple):
    """A configuration and its predicted latency in cycles, which puts configurations in order and is no time."""

    latency: float
    config: config_t


class workgroup_mapping_t(typing.NamedTuple):
    """The order of workgroups: in chunks of wgmxccchunk per die, over wgmxcc dies, in columns of wgm tiles."""

    wgmxccchunk: int
    wgmxcc: int
    wgm: int


# The parameters of a device file behind the fields of hardware_t, and what one unit of the field is in base units.
_AMD = {
    "N_CU": ("num_cus", 1), "lds_capacity": ("lds_bytes", 1), "NUM_XCD": ("num_xcds", 1),
    "mem1_perf_ratio": ("mem1_perf_ratio", 1), "mem2_perf_ratio": ("mem2_perf_ratio", 1),
    "mem3_perf_ratio": ("mem3_perf_ratio", 1), "L2_capacity": ("l2_bytes", 1), "compute_clock_ghz": ("clock", 1e9),
    "parallel_mi_cu": ("parallel_mi", 1),
}
_AMD_BANDWIDTH = ("bw_c0", "bw_c1", "bw_c2")
_NVIDIA = {
    "N_CU": ("num_sms", 1), "lds_capacity": ("shared_memory_bytes", 1), "mem1_perf_ratio": ("l2_perf_ratio", 1),
    "mem3_perf_ratio": ("dram_perf_ratio", 1), "L2_capacity": ("l2_bytes", 1), "compute_clock_ghz": ("clock", 1e9),
    "parallel_mi_cu": ("tensor_cores_per_sm", 1),
}


class hardware_t(_Record):
    """A GPU. All numbers may be set. compute_clock_ghz turns cycles into seconds."""

    _fields = ("arch", "N_CU", "lds_capacity", "rf_capacity", "NUM_XCD", "mem1_perf_ratio", "mem2_perf_ratio",
               "mem3_perf_ratio", "L2_capacity", "compute_clock_ghz", "parallel_mi_cu", "mem_bw_per_wg_coefficients",
               "CU_per_L2", "_device")

    def __init__(self, arch, N_CU, lds_capacity, *rest):
        if len(rest) == 8:  # before there was a register file
            rest = (0, *rest)
        if len(rest) != 9:
            raise Error(f"hardware_t takes 11 or 12 numbers, and {len(rest) + 3} are given; use get_hardware()")
        self.arch, self.N_CU, self.lds_capacity, self._device = _architecture(arch), N_CU, lds_capacity, None
        for name, value in zip(self._fields[3:12], rest):
            setattr(self, name, value)
        self._device = _default_device(self.arch.name)
        self.CU_per_L2 = self.N_CU // max(self.NUM_XCD, 1)

    def print(self) -> None:
        """Prints the numbers."""
        for name in self._fields[:-1]:
            print(f"{name}: {getattr(self, name)}")

    def _overrides(self):
        """The parameters of the device file that are to have other values, by name."""
        own, amd = _described(self._device), self.arch.name.startswith("gfx")
        fields = _AMD if amd else _NVIDIA
        ours = {name: getattr(self, field) * unit for field, (name, unit) in fields.items()}
        coefficients = self.mem_bw_per_wg_coefficients
        ours |= dict(zip(_AMD_BANDWIDTH, coefficients)) if amd else {"dram_bw_coeff": coefficients[1]}
        changed = {name: value for name, value in ours.items() if value != own[name]}
        # AMD's numbers do not depend on each other. origami would scale those that are not given.
        return tuple((ours if amd and changed else changed).items())


def _architecture(arch) -> architecture_t:
    name = arch if isinstance(arch, str) else getattr(arch, "name", None)
    if name not in architecture_t.__members__:
        raise Error(f"{shown(arch)} is no architecture with a reference model; use one of "
                    f"{', '.join(architecture_t.__members__)}")
    return architecture_t[name]


@functools.lru_cache
def _described(device):
    """The parameters of a device, by name."""
    with lib.Model(device, model="reference") as model:
        d = model.description
    own = {p["name"]: p["value"] for p in d["params"]}
    return own | {"arch": d["arch"]}


@functools.lru_cache
def _default_device(arch):
    return next(f"{a['id']}@{a['devices'][0]['id']}" for a in lib.architectures() if a["id"] == arch)


def get_hardware(device: str) -> hardware_t:
    """A device by origami's name, such as "mi300x" or "h200". AMD's package does not have this function."""
    own = _described(device)
    hardware = hardware_t.__new__(hardware_t)
    hardware.arch, hardware._device = _architecture(own["arch"]), device
    amd = hardware.arch.name.startswith("gfx")
    hardware.NUM_XCD, hardware.mem2_perf_ratio = 1, 0.0  # of NVIDIA's
    for field, (name, unit) in (_AMD if amd else _NVIDIA).items():
        setattr(hardware, field, own[name] / unit if unit > 1 else own[name])
    hardware.mem_bw_per_wg_coefficients = \
        tuple(own[name] for name in _AMD_BANDWIDTH) if amd else (0.0, own["dram_bw_coeff"], 0.0)
    hardware.rf_capacity = 4 * own["registers_per_cu" if amd else "register_file"]
    hardware.CU_per_L2 = hardware.N_CU // hardware.NUM_XCD
    return hardware


def get_hardware_for_arch(arch, N_CU: int, lds_capacity: int, *rest: int, **named: int) -> hardware_t:
    """A GPU of an architecture with other numbers: get_hardware_for_arch(arch, N_CU, lds_capacity[, rf_capacity],
    L2_capacity, compute_clock_khz). The memory clock is that of AMD's package, compute_clock_khz ÷ 1.5."""
    names = ("rf_capacity", "L2_capacity", "compute_clock_khz")
    given = dict(zip(names if len(rest) > 2 or "rf_capacity" in named else names[1:], rest)) | named
    if len(rest) > 3 or not {*names[1:]} <= {*given} <= {*names}:
        raise Error("get_hardware_for_arch takes arch, N_CU, lds_capacity, L2_capacity and compute_clock_khz, and "
                    "rf_capacity before the last two")
    arch = _architecture(arch)
    hardware = get_hardware(_default_device(arch.name))
    own, khz = _described(hardware._device), given["compute_clock_khz"]
    hardware.N_CU, hardware.lds_capacity, hardware.L2_capacity = N_CU, lds_capacity, given["L2_capacity"]
    hardware.rf_capacity = given.get("rf_capacity", hardware.rf_capacity)
    hardware.compute_clock_ghz = khz / 1e6
    hardware.CU_per_L2 = N_CU // hardware.NUM_XCD
    if arch.name.startswith("gfx"):
        faster = own["memory_clock"] / (khz * 1e3 / 1.5)
        hardware.mem1_perf_ratio = own["mem1_perf_ratio"] * own["clock"] / (khz * 1e3)
        hardware.mem2_perf_ratio, hardware.mem3_perf_ratio = (
            own[name] * faster for name in ("mem2_perf_ratio", "mem3_perf_ratio"))
    return hardware


def get_hardware_for_device(index: int = 0) -> hardware_t:
    """The GPU of this machine: an AMD GPU as torch describes it, or an NVIDIA GPU as its driver does."""
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch.version, "hip", None):
        properties = torch.cuda.get_device_properties(index)
        arch = _architecture(properties.gcnArchName.split(":")[0])
        devices = next(a["devices"] for a in lib.architectures() if a["id"] == arch.name)
        same = [d["id"] for d in devices if d["name"].lower() == properties.name.lower()]
        hardware = get_hardware(f"{arch.name}@{(same or [devices[0]['id']])[0]}")
        hardware.N_CU = properties.multi_processor_count
        return hardware
    from origami_gemm._cuda import Driver
    try:
        name = Driver().name(index)
    except (OSError, RuntimeError) as e:
        raise Error(f"no GPU of this machine can be asked ({e}); import torch first on ROCm, or name a device, as in "
                    'get_hardware("mi300x")', "device") from None
    known = {d["name"]: d["id"] for a in lib.architectures() if a["id"] in architecture_t.__members__
             for d in a["devices"]}
    if name not in known:
        raise Error(f'no device file describes {shown(name)}; name one that is alike, as in get_hardware("h200")',
                    "device")
    return get_hardware(known[name])


def check_lds_capacity(hardware: hardware_t, mt: dim3_t, a_dtype: data_type_t, b_dtype: data_type_t) -> bool:
    """Whether one tile of A and B fits in the memory of a compute unit."""
    bits = mt.mk() * datatype_to_bits(a_dtype) + mt.nk() * datatype_to_bits(b_dtype)
    return bits <= 8 * hardware.lds_capacity


@functools.lru_cache(maxsize=256)
def _opened(device, overrides, options):
    return lib.Model(device, model="reference", kernel="triton", overrides=dict(overrides) or None,
                     options=dict(options) or None)


@functools.lru_cache(maxsize=1024)
def _tiles(tiles):
    """Tiles as structs. The reference models read no warps and stages."""
    configs = (lib._Pick * len(tiles))()
    for config, sizes in zip(configs, tiles):
        config.block_m, config.block_n, config.block_k = (
            whole(f"mt.{name}", size, 1, 1, (1 << 31) - 1) for name, size in zip("mnk", sizes))
        config.num_warps, config.num_stages, config.split_k = 8, 2, 1
    return configs


def _asked(problem):
    """A problem as a struct."""
    dtype, out = (_TYPES[t.name][2] for t in (problem.a_dtype, problem.d_dtype))
    if problem.a_dtype != problem.b_dtype:
        raise Error(f"A is {problem.a_dtype.name} and B is {problem.b_dtype.name}; the models take one type of both")
    if dtype is None or out is None:
        unknown = problem.a_dtype if dtype is None else problem.d_dtype
        raise Error(f"the models know no {unknown.name}; use another type")
    if problem.a_mx_block_size or problem.b_mx_block_size:
        raise Error("a_mx_block_size or b_mx_block_size is not 0; the models know no scales of blocks")
    size = problem.size
    return lib._problem(size.m, size.n, size.k, dtype, problem.a_transpose == transpose_t.N,
                        problem.b_transpose == transpose_t.N, problem.batch, out, 0, 0, 0, 16, None)


def _options(hardware, config):
    """The options of AMD's model for a configuration. NVIDIA's has none: a workgroup computes a tile."""
    if config.cache_hints_a or config.cache_hints_b:
        raise Error("cache_hints_a or cache_hints_b is not 0; the models know no cache hints")
    if config.prediction_mode != prediction_modes_t.estimation:
        raise Error(f"prediction_mode is {config.prediction_mode.name}; the models know estimation only")
    if not hardware.arch.name.startswith("gfx"):
        return ()
    mi = "auto" if not config.mi.m else f"{config.mi.m}x{config.mi.n}x{config.mi.k}"
    return (("grid", config.grid_selection.name), ("mi", mi), ("occ", str(max(config.occupancy, 1))))


def _latencies(problem, hardware, configs, *more):
    """The picks of the configurations that can be used, by their place in the list."""
    asked, overrides, groups = _asked(problem), hardware._overrides(), {}
    for place, config in enumerate(configs):
        mt, mi = config.mt, config.mi
        launch = (mi.m, mi.n, mi.k, config.occupancy, config.grid_selection, config.cache_hints_a, config.cache_hints_b,
                  config.prediction_mode)
        groups.setdefault(launch, {}).setdefault((mt.m, mt.n, mt.k), []).append(place)
    found, why = {}, None
    for tiles in groups.values():
        options = _options(hardware, configs[next(iter(tiles.values()))[0]])
        model = _opened(hardware._device, overrides, options + more)
        try:
            picks = model._among(asked, _tiles(tuple(tiles)))
        except Error as e:
            if e.kind != "input":
                raise
            why = e
            continue
        for pick in picks:
            for place in tiles[pick.block_m, pick.block_n, pick.block_k]:
                found[place] = pick
    if not found:
        raise why or Error("there are no configurations; give at least one")
    return found


def _intensity(mt):
    return 2 * mt.mnk() / (mt.mk() + mt.nk() + mt.mn())


def _order(problem, hardware, configs, model):
    """The places of the configurations that can be used, the best first, and their picks by place. As in AMD's package,
    those within 1 % of the least latency are in the order of their arithmetic intensity, and then of their size."""
    if model != model_t.gemm:
        raise Error("there is no model of attention; use model_t.gemm")
    found = _latencies(problem, hardware, configs)

    def intensity(place):
        return _intensity(configs[place].mt)

    if not hardware.arch.name.startswith("gfx"):
        return sorted(found, key=lambda place: (found[place].cycles, -intensity(place), place)), found
    order = sorted(found, key=lambda place: (found[place].cycles, place))
    least = found[order[0]].cycles
    near = sum(1 for place in order if (found[place].cycles - least) / max(least, 1e-9) < 0.01)
    leading = sorted(order[:near], key=lambda place: -intensity(place))
    same = [place for place in leading if intensity(leading[0]) - intensity(place) < 1e-6]
    same.sort(key=lambda place: (configs[place].mt.m, configs[place].mt.n, configs[place].mt.k), reverse=True)
    return same + leading[len(same):] + order[near:], found


def rank_configs(problem: problem_t, hardware: hardware_t, configs: list[config_t],
                 model: model_t = model_t.gemm) -> list[prediction_result_t]:
    """The configurations that can be used, best first."""
    configs = list(configs)
    return select_topk_configs(problem, hardware, configs, len(configs), model)


def select_topk_configs(problem: problem_t, hardware: hardware_t, configs: list[config_t], topk: int,
                        model: model_t = model_t.gemm) -> list[prediction_result_t]:
    """The best topk configurations, best first; there can be fewer."""
    topk, configs = whole("topk", topk, 0, 0, (1 << 63) - 1), list(configs)
    order, found = _order(problem, hardware, configs, model)
    return [prediction_result_t(found[place].cycles, configs[place]._copy()) for place in order[:topk]]


def select_config(problem: problem_t, hardware: hardware_t, configs: list[config_t],
                  model: model_t = model_t.gemm) -> prediction_result_t:
    """The best configuration."""
    return select_topk_configs(problem, hardware, configs, 1, model)[0]


def select_config_mnk(m: int, n: int, k: int, hardware: hardware_t, configs: list[config_t]) -> prediction_result_t:
    """The best configuration for a product of fp16 matrices, of which A is transposed."""
    problem = problem_t()
    problem.size = dim3_t(m, n, k)
    return select_config(problem, hardware, configs)


def compute_total_latency(problem: problem_t, hardware: hardware_t, config: config_t,
                          max_cus: int | None = None) -> float:
    """The latency of a configuration in cycles."""
    if max_cus not in (None, hardware.N_CU):
        raise Error(f"max_cus is {shown(max_cus)}; leave it out, or set hardware.N_CU")
    return _latencies(problem, hardware, [config])[0].cycles


def compute_perf_gflops(hardware: hardware_t, problem: problem_t, latency: float) -> float:
    """The rate at a latency, in GFLOP/s. As in AMD's package, the batch does not count."""
    return 2.0 * problem.size.mnk() / (latency / (hardware.compute_clock_ghz * 1e9)) / 1e9


def select_workgroup_mapping(problem: problem_t, hardware: hardware_t, config: config_t,
                             skGrid: int) -> workgroup_mapping_t:
    """The order of skGrid workgroups, as AMD's package of February 2026 chose it."""
    asked, config = problem_t(), config._copy()
    asked.__dict__.update(problem.__dict__)
    if not hardware.arch.name.startswith("gfx"):
        return workgroup_mapping_t(0, 1, _latencies(asked, hardware, [config])[0].group_m)
    # The mapping does not depend on K. With this one and this depth, no rule of the model excludes the tile.
    asked.size, config.mt.k = dim3_t(problem.size.m, problem.size.n, 1025), 16
    grid = whole("skGrid", skGrid, 1, 1, (1 << 31) - 1)
    pick = _latencies(asked, hardware, [config], ("mapping", "feb"), ("workgroups", str(grid)))[0]
    return workgroup_mapping_t(pick.chunk, pick.xcds, pick.group_m)


def compute_number_of_output_tiles(mt_m: int, mt_n: int, m: int, n: int, batch: int) -> int:
    """The tiles of C."""
    return -(-m // mt_m) * -(-n // mt_n) * batch


def select_grid_size(problem: problem_t, hardware: hardware_t, config: config_t, grid_selection: grid_selection_t,
                     max_cus: int | None = None) -> int:
    """The workgroups of a launch, for the rules that need no model."""
    tiles = compute_number_of_output_tiles(config.mt.m, config.mt.n, problem.size.m, problem.size.n, problem.batch)
    units = min(hardware.N_CU, max_cus or hardware.N_CU)
    sizes = {"data_parallel": tiles, "number_of_cus": units, "min_resources": min(units, tiles)}
    if grid_selection.name not in sizes:
        raise Error(f"select_grid_size knows no {grid_selection.name}; use one of {', '.join(sizes)}")
    return sizes[grid_selection.name]
