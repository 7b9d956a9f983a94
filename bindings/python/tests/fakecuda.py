"""A libcuda.so.1 without a GPU, for tests of what launches kernels: bindings/c/testdata/fakecuda.c says what it does."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "c" / "testdata" / "fakecuda.c"


def run(case, program):
    """Runs a program's text in another process over the driver, and returns what it prints and what the driver was asked.
    Environment variables of the driver are those of the process."""
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None or sys.platform != "linux":
        raise unittest.SkipTest("no C compiler, or not Linux")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([compiler, "-shared", "-fPIC", "-o", f"{folder}/libcuda.so.1", str(SOURCE)], check=True)
        environment = os.environ | {"LD_LIBRARY_PATH": folder, "FAKE_LOG": f"{folder}/log", "XDG_CACHE_HOME": f"{folder}/cache",
                                    "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        case.assertEqual(done.returncode, 0, done.stderr)
        log = pathlib.Path(folder, "log")
        return done.stdout, log.read_text().splitlines() if log.exists() else []
