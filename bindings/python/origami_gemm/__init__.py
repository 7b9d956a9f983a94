"""origami for Python: the kernel configuration for a matrix multiplication, from analytical models of GPUs.

    from origami_gemm import Model
    pick = Model("sm90", "h200").select(4096, 4096, 4096)

origami_gemm.lib answers from the models in this process. origami_gemm.triton launches Triton kernels with what they
pick.
"""

__version__ = "0.2.0.dev0"

from .lib import Advice, ArgumentTypeError, Band, Error, Model, Pick, Regret, architectures, compare

__all__ = ["Advice", "ArgumentTypeError", "Band", "Error", "Model", "Pick", "Regret", "architectures", "compare"]
