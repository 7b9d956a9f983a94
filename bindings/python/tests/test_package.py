"""What the package offers at its top, and that it and the plugin SDK are apart."""

import os
import pathlib
import subprocess
import sys
import unittest

import origami_gemm
from origami_gemm import lib

CLIENT = pathlib.Path(__file__).resolve().parents[1]
SDK = CLIENT.parents[1] / "sdk" / "python"


class Package(unittest.TestCase):
    def test_version(self):
        self.assertRegex(origami_gemm.__version__, r"^\d+\.\d+\.\d+(\.dev0)?$")

    def test_no_word_of_the_name_that_another_package_has(self):
        for folder in (CLIENT, SDK):
            self.assertEqual([], list((folder / "origami").glob("*.py")), "the Python package index has another package `origami`")

    def test_top(self):
        self.assertIs(origami_gemm.Model, lib.Model)
        self.assertTrue((CLIENT / "origami_gemm" / "py.typed").exists())

    def test_each_without_the_other(self):
        for folder, name, other in ((CLIENT, "origami_gemm", "origami_gemm_plugin"),
                                    (SDK, "origami_gemm_plugin", "origami_gemm")):
            code = f"import sys, {name}; print({name!r} in sys.modules, {other!r} in sys.modules)"
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 env=os.environ | {"PYTHONPATH": str(folder)})
            self.assertEqual(out.stdout, "True False\n", out.stderr)


if __name__ == "__main__":
    unittest.main()
