"""origami for Python: the kernel configuration for a matrix multiplication, from analytical models of GPUs.

    import origami
    pick = origami.Model("sm90", "h200").select(4096, 4096, 4096)

origami.lib answers from the models in this process, origami.triton launches Triton kernels with what they pick.
"""

import pkgutil

# origami.plugin, for authors of plugins, is another distribution: origami-gemm-plugin. Both may be installed.
__path__ = pkgutil.extend_path(__path__, __name__)
__version__ = "0.1.0"

from .lib import ArgumentTypeError, Error, Model, Pick, Regret, architectures  # noqa: E402

__all__ = ["ArgumentTypeError", "Error", "Model", "Pick", "Regret", "architectures"]
