"""The package beside the plugin SDK, which adds origami.plugin to the same name."""

import os
import pathlib
import subprocess
import sys
import unittest

import origami

CLIENT = pathlib.Path(__file__).resolve().parents[1]
SDK = CLIENT.parents[1] / "sdk" / "python"


class Package(unittest.TestCase):
    def test_version(self):
        self.assertRegex(origami.__version__, r"^\d+\.\d+\.\d+$")

    def test_client_and_sdk_in_either_order(self):
        for path in ([CLIENT, SDK], [SDK, CLIENT]):
            code = ("import origami, origami.plugin, origami.pack\n"
                    "print(origami.__version__, origami.plugin.Config.__name__)")
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))})
            self.assertEqual(out.stdout.split(), [origami.__version__, "Config"], out.stderr)

    def test_sdk_alone(self):
        out = subprocess.run([sys.executable, "-c", "import origami.plugin; print(origami.plugin.Config.__name__)"],
                             capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(SDK)})
        self.assertEqual(out.stdout, "Config\n", out.stderr)


if __name__ == "__main__":
    unittest.main()
