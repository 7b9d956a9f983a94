"""What tests need beside the package: modules, the C library, a GPU. Without it they skip, or fail if one of some environment
variables asks for it."""

import importlib
import os
import unittest

HOPPER = (9, 0)


def all_of(*modules, files=(), gpu=None, required=("ORIGAMI_REQUIRE_GPU",)):
    """Skips a module of tests where one of the modules, the files or the C library is not there, or no GPU: any, or
    one of a compute capability."""
    try:
        for name in modules:
            importlib.import_module(name)
        from origami_gemm.lib import load

        load()
        for file in files:
            os.stat(file)
        if gpu is not None:
            import torch

            if not torch.cuda.is_available() or gpu is not True and torch.cuda.get_device_capability() != gpu:
                raise RuntimeError("no Hopper GPU" if gpu == HOPPER else "no GPU")
    except (ImportError, OSError, RuntimeError) as e:
        if "1" in map(os.environ.get, required):
            raise
        raise unittest.SkipTest(str(e))
