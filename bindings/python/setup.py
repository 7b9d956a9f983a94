"""Adds the C library of the checkout (`make lib`), if there is one, and tags the wheel for its platform then."""

import os
import pathlib
import shutil

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

LIBRARY = pathlib.Path(
    os.environ.get("ORIGAMI_LIB") or pathlib.Path(__file__).resolve().parents[2] / "bin" / "liborigami.so")


class Client(Distribution):
    def has_ext_modules(self):
        return LIBRARY.exists()


class Build(build_py):
    def run(self):
        super().run()
        if LIBRARY.exists() and not self.editable_mode:
            shutil.copy(LIBRARY, pathlib.Path(self.build_lib) / "origami_gemm" / "liborigami.so")


class Wheel(bdist_wheel):
    def get_tag(self):
        # The library is loaded through ctypes: it depends on the platform, and on no version of Python.
        return ("py3", "none", super().get_tag()[2])


setup(distclass=Client, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
