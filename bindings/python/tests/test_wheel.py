"""The wheel for this machine (`make wheel`), as a user gets it: in a fresh environment, with neither Go nor a C compiler
nor a package index in reach. ORIGAMI_WHEELS names the folder of the wheels; without it the tests skip. ORIGAMI_INDEX is
the address of a package index to install from instead."""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile

WHEELS = os.environ.get("ORIGAMI_WHEELS")
MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


@unittest.skipUnless(WHEELS and sys.platform == "linux", "ORIGAMI_WHEELS names no folder of wheels for Linux")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        found = list(pathlib.Path(WHEELS).glob(f"origami_gemm-*_{MACHINE}.whl"))
        if len(found) != 1:
            raise AssertionError(f"{WHEELS} has {len(found)} wheels for {MACHINE}; run `make wheel`")
        cls.wheel = found[0].resolve()
        cls.version = cls.wheel.name.split("-")[1]
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        venv.create(cls.home / "env", with_pip=True)
        index = os.environ.get("ORIGAMI_INDEX")
        source = ["--index-url", index, f"origami-gemm=={cls.version}"] if index else ["--no-index", cls.wheel]
        cls.run_(cls, "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *source)

    def run_(self, *command):
        """What a command of the environment prints. PATH has nothing else, and no variable names a checkout."""
        programs = self.home / "env" / "bin"
        done = subprocess.run([programs / command[0], *command[1:]], capture_output=True, text=True, cwd=self.home,
                              env={"PATH": str(programs), "HOME": str(self.home), "LANG": "C.UTF-8"})
        if done.returncode:
            raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_library_and_command_give_the_same_pick(self):
        out = self.run_("python", "-c", "import dataclasses, json; from origami_gemm import Model\n"
                        "pick = Model('sm90', 'h200').select(4096, 4096, 4096, dtype='bf16')\n"
                        "print(json.dumps(dataclasses.asdict(pick)))")
        pick = json.loads(out)
        out = self.run_("origami", "--arch", "h200", "select", "-m", "4096", "-n", "4096", "-k", "4096", "--dtype", "bf16",
                        "--json")
        answer = json.loads(out)
        self.assertEqual(pick["seconds"], answer["predicted"]["seconds"])
        for name, value in answer["config"].items():
            if name in pick:
                self.assertEqual(pick[name], value, name)
        self.assertGreater(pick["block_m"], 0)

    def test_one_version(self):
        out = self.run_("python", "-c", "import ctypes, origami_gemm, pathlib\n"
                        "library = ctypes.CDLL(pathlib.Path(origami_gemm.__file__).parent / 'liborigami.so')\n"
                        "library.origami_version.restype = ctypes.c_char_p\n"
                        "print(origami_gemm.__version__, library.origami_version().decode())")
        version, library = out.split()
        self.assertEqual(version, self.version)
        self.assertEqual(library.replace("-dev", ".dev0"), self.version)
        self.assertEqual(json.loads(self.run_("origami", "version", "--json"))["version"], library)

    def test_plugins_of_the_command_start(self):
        self.assertIn("nvidia", self.run_("origami", "plugin", "ls"))
        plugins = {one["name"]: one for one in map(json.loads, self.run_(
            "python", "-m", "origami_gemm", "plugin", "ls", "--json").splitlines())}
        self.assertEqual((plugins["cuda"]["state"], plugins["cuda"]["executor"]), ("ok", True))
        self.assertRegex(plugins["triton"]["reason"], "grpcio|did not end within")  # of the extra "triton"; Python starts slowly

    def test_size(self):
        self.assertLess(self.wheel.stat().st_size, 30e6)

    def test_contents(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            command = archive.getinfo(f"origami_gemm-{self.version}.data/scripts/origami")
        for name in ("origami_gemm/py.typed", "origami_gemm/SKILL.md", "origami_gemm/liborigami.so", "origami_gemm/triton.py", "origami_gemm/torch/__init__.py"):
            self.assertIn(name, names)
        licenses = [pathlib.PurePath(name).name for name in names if "dist-info/licenses/" in name]
        self.assertEqual(sorted(licenses), ["LICENSE", "LICENSES-third-party.txt", "NOTICE"])
        self.assertTrue(command.external_attr >> 16 & 0o111, "the command is not executable")
        self.assertEqual([n for n in names if n.endswith(".pyc") or "/tests/" in n], [])


@unittest.skipUnless(WHEELS, "ORIGAMI_WHEELS names no folder of wheels")
class Tags(unittest.TestCase):
    def test_manylinux(self):
        """Each wheel for Linux runs where its tag says so: auditwheel reads the symbols of every binary in it."""
        wheels = list(pathlib.Path(WHEELS).glob("*-manylinux_*.whl"))
        self.assertTrue(wheels)
        for wheel in wheels:
            with self.subTest(wheel=wheel.name):
                tag = wheel.stem.split("-")[-1]
                out = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
                self.assertEqual(out.returncode, 0, out.stderr)
                found = re.search(r'platform\s+tag:\s+"([^"]+)"', out.stdout)
                self.assertTrue(found, out.stdout)
                self.assertEqual(_glibc(found[1])[1], _glibc(tag)[1])
                self.assertLessEqual(_glibc(found[1])[0], _glibc(tag)[0], out.stdout)


def _glibc(tag):
    """The version of glibc and the machine of a tag such as manylinux_2_17_x86_64."""
    major, minor, machine = re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", tag).groups()
    return (int(major), int(minor)), machine


if __name__ == "__main__":
    unittest.main()
