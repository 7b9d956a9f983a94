"""docs/many-gpus/ray_gpu.py on clusters of several nodes on this machine, with GPUs that take recorded times (replay.py). It needs
the package ray, what plugins in Python need, and the command (`make build`, or $ORIGAMI); without them the tests skip, or
fail if ORIGAMI_REQUIRE_RAY=1. `make cluster-test` has them, and every fault, which takes half an hour."""

import contextlib
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
ORIGAMI = pathlib.Path(os.environ.get("ORIGAMI") or CHECKOUT / "bin" / "origami")
SCRIPT = CHECKOUT / "docs" / "many-gpus" / "ray_gpu.py"
SLIDES = CHECKOUT / "plugins" / "nvidia" / "data" / "grids" / "slides"
ARGUMENTS = ["--arch", "sm90@h200", "--executor", "replay", "--strategy", "all"]
ALL = os.environ.get("ORIGAMI_TEST_ALL") == "1"
KEYS = 9 * 100
PLUGIN = """#!{python}
import sys
sys.path[:0] = {path}
TIMES, FOLDER, PACE = {times!r}, {folder!r}, {pace}
"""


def setUpModule():
    missing = [name for name in ("ray", "grpc") if not importlib.util.find_spec(name)]
    if not missing and not ORIGAMI.exists():
        missing = [str(ORIGAMI)]
    if missing and os.environ.get("ORIGAMI_REQUIRE_RAY") != "1":
        raise unittest.SkipTest(f"there is no {missing[0]}")
    global WORLD, UNDISTURBED
    WORLD = World()
    unittest.addModuleCleanup(WORLD.close)
    folder = WORLD.records("alone")
    subprocess.run(["origami", "tune", WORLD.plan, *ARGUMENTS, "--records", folder], env=WORLD.env, check=True,
                   capture_output=True)
    UNDISTURBED = read(folder)
    assert len(UNDISTURBED) == KEYS, len(UNDISTURBED)


def read(folder):
    """The outcome of each configuration. It is an error if one is there twice."""
    out = {}
    for line in (folder / "measurements.jsonl").read_text().splitlines():
        m = json.loads(line)
        if m["phase"] == "sweep":
            key = json.dumps([m["problem"], m["config"]], sort_keys=True)
            assert key not in out, f"{key} is there twice"
            out[key] = (m["status"], m.get("median_seconds"))
    return out


def processes(*words):
    """The processes whose command line begins with words."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().split(b"\0")[:len(words)] == [os.fsencode(w) for w in words]:
                found.append(int(path.parent.name))
    return found


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


class World:
    """A home with the command and a trusted plugin, and a cluster, once there is one."""

    def __init__(self, pace=0.003):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="o"))  # a short name: Ray's sockets are below
        bins = self.folder / "bin"
        for folder in ("bin", "home", "told"):
            (self.folder / folder).mkdir()
        self.told, self.plan, self.cluster = self.folder / "told", self.folder / "plan.yaml", None
        self.origami = shutil.copy(ORIGAMI, bins / "origami")
        self.plugin = bins / "origami-plugin-replay"
        packages = [str(CHECKOUT / "sdk" / "python"), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
        self.plugin.write_text(PLUGIN.format(python=sys.executable, path=packages, folder=str(self.told), pace=pace,
                                             times=str(SLIDES / "h200" / "times.csv.gz"))
                               + pathlib.Path(__file__).with_name("replay.py").read_text())
        self.plugin.chmod(0o755)
        whole = (SLIDES / "tune.yaml").read_text()
        sizes = "          - range: [[16, 16, 16, 64], [16, 16, 16, 64], [3104]]\n"  # 16, 32, 64
        self.plan.write_text(whole[:whole.index("        sizes:")] + "        sizes:\n" + sizes)
        self.env = {**os.environ, "HOME": str(self.folder / "home"), "PATH": f"{bins}:{os.environ['PATH']}",
                    "PYTHONPATH": ":".join([str(CHECKOUT / "bindings" / "python"), *packages])}
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "RAY_ADDRESS"):
            self.env.pop(name, None)
        os.environ.update(self.env)  # of the nodes
        subprocess.run(["origami", "plugin", "trust", self.plugin], env=self.env, check=True, capture_output=True)

    def close(self):
        if self.cluster:
            self.cluster.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    def records(self, name):
        folder = self.folder / "records" / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def start(self, nodes):
        """A cluster whose nodes have a GPU each, and a node without one."""
        from ray.cluster_utils import Cluster

        if self.cluster is None:
            self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0})
            self.nodes, self.number = [], 1
        while len(self.nodes) > nodes:
            self.cluster.remove_node(self.nodes.pop())
        while len(self.nodes) < nodes:
            self.add()
        for path in self.told.iterdir():
            path.unlink()

    def add(self):
        self.number += 1
        self.nodes.append(self.cluster.add_node(
            num_cpus=1, num_gpus=1, node_ip_address=f"127.0.0.{self.number}",
            resources={"accelerator_type:H200": 1, f"pool{self.number}": 1}))

    def tune(self, folder, *flags, prefix=(), gpus=2):
        """The command, which measures with GPUs of the cluster. Its output is in a file beside the folder. flags are the
        script's."""
        folder.parent.mkdir(exist_ok=True)
        gpu = shlex.join([sys.executable, str(SCRIPT), "replay", "--address", self.cluster.address, *flags])
        with open(f"{folder}.log", "a") as log:
            return subprocess.Popen(
                [*prefix, "origami", "tune", self.plan, *ARGUMENTS, "--records", folder, *["--remote", "exec " + gpu] * gpus],
                env=self.env, stdout=log, stderr=log, start_new_session=True)

    def runs(self, gpu="*"):
        return sum(p.stat().st_size for p in self.told.glob(f"runs@{gpu}"))

    def lenders(self):
        """The processes of `origami lend`, one a GPU."""
        return processes("origami", "lend")


class RayCase(unittest.TestCase):
    def wait(self, process, folder, seconds=180):
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = "too late"
        return code, pathlib.Path(f"{folder}.log").read_text()

    def progress(self, share, process, folder):
        """Waits until so much of the work is measured."""
        while WORLD.runs() < share * KEYS:
            if process.poll() is not None:
                self.fail(f"it ended at {WORLD.runs()}: " + pathlib.Path(f"{folder}.log").read_text()[-3000:])
            time.sleep(0.02)

    def whole(self, process, folder):
        code, log = self.wait(process, folder)
        self.assertEqual(code, 0, log[-3000:])
        self.assertEqual(read(folder), UNDISTURBED)
        return log


class Cluster(RayCase):
    def test_what_one_process_finds(self):
        WORLD.start(2)
        folder = WORLD.records("two")
        log = self.whole(WORLD.tune(folder), folder)
        self.assertNotIn("set aside", log)
        shares = [path.stat().st_size for path in WORLD.told.glob("runs@*")]
        self.assertEqual(len(shares), 2)
        self.assertGreater(min(shares), KEYS / 4, "a GPU had little to do")

    def test_which_gpus(self):
        WORLD.start(2)
        folder = WORLD.records("which")
        self.whole(WORLD.tune(folder, "--resources", f'{{"pool{WORLD.number}": 0.01}}', gpus=1), folder)

    def test_a_bad_request_says_what_origami_says(self):
        WORLD.start(2)
        folder = WORLD.records("bad")
        process = WORLD.tune(folder, prefix=["env", "ORIGAMI_KERNEL=nonesuch"])
        code, log = self.wait(process, folder)
        self.assertEqual(code, 2, log)
        self.assertIn("nonesuch", log)


def one():
    """The process that lends a GPU that measures."""
    return max(WORLD.lenders())


# What is done to a run in which two GPUs measure. What the log says then, and whether it takes long. Faults of executors and
# of GPUs are tested without Ray.
FAULTS = {
    "lender killed": (lambda: os.kill(one(), signal.SIGKILL), "", False),
    "actor killed": (lambda: os.kill(parent(one()), signal.SIGKILL), "", False),
    "lender silent": (lambda: os.kill(one(), signal.SIGSTOP), "", True),
    "node lost": (lambda: WORLD.cluster.remove_node(WORLD.nodes.pop(), allow_graceful=False), "set aside", True),
    "node replaced": (lambda: (WORLD.cluster.remove_node(WORLD.nodes.pop(), allow_graceful=False), WORLD.add()), "",
                      False),
}

# What ends a run. The same command goes on.
ENDS = {
    "killed": lambda process, folder: os.kill(process.pid, signal.SIGKILL),
    "interrupted": lambda process, folder: os.killpg(process.pid, signal.SIGINT),
    "tune killed": lambda process, folder: [os.kill(p, signal.SIGKILL) for p in processes(str(WORLD.origami), "tune")],
    "terminated": lambda process, folder: os.kill(process.pid, signal.SIGTERM),
}


@unittest.skipUnless(ALL, "every fault takes half an hour (make cluster-test)")
class Faults(RayCase):
    def test_a_fault_loses_nothing(self):
        for name, (do, says, long) in FAULTS.items():
            for share in (0.5,) if long else (0.05, 0.5, 0.85):
                with self.subTest(name, at=share):
                    WORLD.start(2)
                    begun = time.monotonic()
                    folder = WORLD.records(f"{name} {share}".replace(" ", "-"))
                    process = WORLD.tune(folder)
                    self.progress(share, process, folder)
                    do()
                    self.assertIn(says, self.whole(process, folder))
                    print(f"{name} at {share}: whole after {time.monotonic() - begun:.1f} s", flush=True)

    def test_what_ends_goes_on(self):
        for name, do in ENDS.items():
            for share in (0.05, 0.5, 0.85):
                with self.subTest(name, at=share):
                    WORLD.start(2)
                    folder = WORLD.records(f"{name}-{share}".replace(" ", "-"))
                    process = WORLD.tune(folder)
                    self.progress(share, process, folder)
                    do(process, folder)
                    code, log = self.wait(process, folder)
                    self.assertNotEqual(code, 0, log)
                    self.settled()
                    self.whole(WORLD.tune(folder), folder)
                    print(f"{name} at {share}: whole after another run", flush=True)

    def settled(self):
        """Waits until nothing of a run is left."""
        deadline = time.monotonic() + 60
        while WORLD.lenders() or processes(str(WORLD.origami), "tune"):
            self.assertLess(time.monotonic(), deadline, "something is left of a run that ended")
            time.sleep(0.1)

    def test_a_lost_cluster_ends_it(self):
        WORLD.start(2)
        folder = WORLD.records("lost")
        process = WORLD.tune(folder)
        self.progress(0.5, process, folder)
        WORLD.cluster.shutdown()
        WORLD.cluster = None
        code, log = self.wait(process, folder)
        self.assertNotEqual(code, 0, log)
        self.settled()
        WORLD.start(2)
        self.whole(WORLD.tune(folder), folder)


if __name__ == "__main__":
    unittest.main()
