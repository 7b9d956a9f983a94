"""Adds the C library and the command of the checkout (`make lib build`), where they were built, and tags the wheel for
its platform then. ORIGAMI_LIB and ORIGAMI name others. `make wheel` makes the wheels of a release."""

import os
import pathlib
import shutil

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

from distutils.command.build_scripts import build_scripts  # setuptools provides it, and imports it first

BIN = pathlib.Path(__file__).resolve().parents[2] / "bin"
LIBRARY = pathlib.Path(os.environ.get("ORIGAMI_LIB") or BIN / "liborigami.so")
COMMAND = pathlib.Path(os.environ.get("ORIGAMI") or BIN / "origami")
# What measures on a GPU stands beside the command, which trusts what was built with it.
EXECUTORS = [COMMAND.with_name("origami-plugin-" + name) for name in ("cuda", "triton")]


class Client(Distribution):
    def has_ext_modules(self):
        return LIBRARY.exists()


class Build(build_py):
    def run(self):
        super().run()
        if LIBRARY.exists() and not self.editable_mode:
            shutil.copy(LIBRARY, pathlib.Path(self.build_lib) / "origami_gemm" / "liborigami.so")


class Commands(build_scripts):
    """setuptools takes a script for a text in the project's folder. The command is a binary elsewhere."""

    def get_source_files(self):
        return []

    def run(self):
        self.mkpath(self.build_dir)
        for file in filter(pathlib.Path.exists, [COMMAND, *EXECUTORS]):
            shutil.copy(file, pathlib.Path(self.build_dir) / file.name)


class Wheel(bdist_wheel):
    def get_tag(self):
        # The library is loaded through ctypes: it depends on the platform, and on no version of Python.
        return ("py3", "none", super().get_tag()[2])


setup(
    distclass=Client,
    cmdclass={"build_py": Build, "build_scripts": Commands, "bdist_wheel": Wheel},
    scripts=["origami"] if LIBRARY.exists() and COMMAND.exists() else [],
)
