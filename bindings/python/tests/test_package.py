"""What the package offers at its top, and that it and the plugin SDK are apart."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import origami_gemm
from origami_gemm import __main__ as command, lib

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

    def test_the_command(self):
        try:
            command.command()
        except origami_gemm.Error as e:
            self.skipTest(str(e))
        asked = ["version", "--json"]
        out = subprocess.run([sys.executable, "-m", "origami_gemm", *asked], capture_output=True, text=True,
                             env=os.environ | {"PYTHONPATH": str(CLIENT)})
        self.assertEqual(json.loads(out.stdout)["version"].replace("-dev", ".dev0"), origami_gemm.__version__)

    def test_the_page_of_the_index_has_whole_addresses(self):
        links = re.findall(r"\]\(([^)]*)\)", (CLIENT / "README.md").read_text().replace("\n", " "))
        self.assertGreater(len(links), 5)
        self.assertEqual([], [link for link in links if not link.startswith("https://")])

    def test_what_the_skill_says(self):
        text = (CLIENT / "origami_gemm" / "SKILL.md").read_text()
        program = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
        names = {}
        try:
            exec(program, names)
        except origami_gemm.Error as e:
            if e.kind == "device":
                self.skipTest(str(e))
            raise
        self.assertEqual(len(names["picks"]), 1000)

    def test_each_without_the_other(self):
        for folder, name, other in ((CLIENT, "origami_gemm", "origami_gemm_plugin"),
                                    (SDK, "origami_gemm_plugin", "origami_gemm")):
            code = f"import sys, {name}; print({name!r} in sys.modules, {other!r} in sys.modules)"
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 env=os.environ | {"PYTHONPATH": str(folder)})
            self.assertEqual(out.stdout, "True False\n", out.stderr)


if __name__ == "__main__":
    unittest.main()
