"""Tests of a plugin's certificate, of the packed file and of the README's example."""

import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from origami_gemm_plugin import pack
from origami_gemm_plugin import _certificate

HERE = pathlib.Path(__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


class Certificate(unittest.TestCase):
    def test_made(self):
        key, certificate, der = _certificate.make()
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("k", "c")]
            for path, data in zip(paths, (key, certificate)):
                pathlib.Path(path).write_bytes(data)
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(paths[1], paths[0])  # they belong together
        context, others = (ssl.create_default_context() for _ in range(2))
        context.load_verify_locations(cadata=der)
        self.assertEqual(len(context.get_ca_certs()), 1 + len(others.get_ca_certs()))  # it is a CA's
        for part in (b"localhost", bytes.fromhex("2a8648ce3d030107")):  # the name; the curve P-256
            self.assertIn(part, der)

    def test_without_openssl(self):
        with (
            unittest.mock.patch.object(_certificate.subprocess, "run", side_effect=FileNotFoundError),
            self.assertRaisesRegex(RuntimeError, "install"),
        ):
            _certificate.make()


class Pack(unittest.TestCase):
    def test_one_file_that_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            source = folder / "source"
            (source / "tests").mkdir(parents=True)
            (source / "tests" / "secret.py").write_text("")
            (source / "__main__.py").write_text("import other.extra\n" + (HERE / "toy.py").read_text())
            (source / "helper.py").write_text("")
            # A module of another package, as of the client's.
            (folder / "more" / "other").mkdir(parents=True)
            (folder / "more" / "other" / "extra.py").write_text("")
            patch = unittest.mock.patch.object(sys, "path", [*sys.path, str(folder / "more")])
            patch.start()
            self.addCleanup(patch.stop)
            files = [folder / name for name in ("one", "two")]
            for file in files:
                pack.pack(source, file, ["other.extra"])
                os.utime(source / "helper.py", (1e9, 1e9))
            self.assertEqual(files[0].read_bytes(), files[1].read_bytes())
            # It runs on what it holds, also where another package of that name comes with python3.
            for name in ("origami_gemm_plugin", "other"):
                (folder / "installed" / name).mkdir(parents=True)
                (folder / "installed" / name / "__init__.py").write_text("raise ImportError('not this one')")
            packages = [path for path in sys.path if path and not pathlib.Path(path, "origami_gemm_plugin").exists()]
            environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([str(folder / "installed"), *packages])}
            out = subprocess.run(
                [sys.executable, files[0], "describe"], capture_output=True, text=True, env=environment
            )
            self.assertIn('"toy"', out.stdout, out.stderr)
            self.assertTrue(os.access(files[0], os.X_OK))
            import zipfile

            names = zipfile.ZipFile(files[0]).namelist()
            self.assertEqual([n for n in names if "/" not in n], ["__main__.py", "helper.py"])
            self.assertIn("other/extra.py", names)
            self.assertNotIn("origami_gemm_plugin/pack.py", names)
            with self.assertRaises(SystemExit):
                pack.pack(source / "tests", folder / "three")
            with self.assertRaisesRegex(SystemExit, "no module other.nothing"):
                pack.pack(source, folder / "three", ["other.nothing"])


class Readme(unittest.TestCase):
    def test_the_example_describes_itself(self):
        code = re.search(r"```python\n(.*?)```", (HERE.parent / "README.md").read_text(), re.S)[1]
        out = subprocess.run([sys.executable, "-c", code, "describe"], capture_output=True, text=True, env=ENVIRONMENT)
        self.assertIn('"sleepy"', out.stdout, out.stderr)


if __name__ == "__main__":
    unittest.main()
