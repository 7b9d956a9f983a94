"""The executor "triton": compiles, checks and measures a Triton GEMM on NVIDIA GPUs.

Who it is must be told without a device, and quickly: Triton and PyTorch are imported when the executor is opened.
"""

from origami.plugin import DeviceError, Manifest

from .driver import Driver

VERSION = "0.1.0"


class Provider:
    """Makes the executor."""

    manifest = Manifest("triton", VERSION)

    def open(self):
        driver = Driver()  # first: PyTorch takes seconds to import
        try:
            from .executor import Executor
        except ImportError as error:
            raise DeviceError(
                str(error), where="triton", fix="install torch and triton for the python3 that the plugin runs with"
            ) from error
        return Executor(driver)
