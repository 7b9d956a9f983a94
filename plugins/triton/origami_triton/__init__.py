"""The executor "triton": compiles, checks and measures a Triton GEMM on NVIDIA GPUs.

The manifest must be available quickly and without a device: Triton and PyTorch are imported when the executor opens.
"""

import os

from origami_gemm_plugin import DeviceError, Manifest

from .driver import Driver

VERSION = "0.1.0"


class Provider:
    """Makes the executor."""

    manifest = Manifest("triton", VERSION)
    whole_problems = True

    def open(self):
        # An installed origami_gemm offers PyTorch a backend. This program has a part of that package in its place.
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        driver = Driver()  # first: PyTorch takes seconds to import
        try:
            from .executor import Executor
        except ImportError as error:
            raise DeviceError(
                str(error), where="triton", fix="install torch and triton for the python3 that the plugin runs with"
            ) from error
        return Executor(driver)
