"""What the author of an executor plugin writes against.

An executor compiles kernel configurations for a device, checks their results and measures them. Its author implements
Provider, Executor and Kernel, in classes of any name, and ends the program with

    if __name__ == "__main__":
        serve_executor(MyProvider())

The rest is handled here: the handshake, gRPC over a private socket with mutual TLS, log lines on standard error, and
ending when the host does. Standard output belongs to the handshake; what is printed goes to standard error. Log with
the standard library's logging.

Calls come from several threads: compiling goes on beside a check or a measurement, and those take turns per device,
which is the executor's business (a lock).

The exception that an implementation raises says what becomes of it:

    InputError    this configuration or problem cannot be built or run here; others can
    PluginError   running this kernel has cost the process its device context; the host starts a fresh one
    DeviceError   there is no device or driver, or it was lost; nothing more can be run

Any other exception is an internal error, which ends what the host was doing, and its traceback is logged.
"""

from __future__ import annotations

from ._types import (
    Config, Device, DeviceError, DiagnosticError, Environment, Executor, InputError, Kernel, Manifest,
    MeasureOptions, Numerics, PluginError, Provider, Resources, Sample,
)
from ._problem import Problem

__all__ = [
    "Config", "Device", "DeviceError", "DiagnosticError", "Environment", "Executor", "InputError", "Kernel", "Manifest",
    "MeasureOptions", "Numerics", "PluginError", "Problem", "Provider", "Resources", "Sample", "serve_executor",
]


def serve_executor(provider: Provider) -> None:
    """The main function of an executor plugin. It does not return.

    Started by a host it serves the provider until the host ends. Run by hand with the argument "describe" it prints as
    JSON who it is; without it, what to do instead. "describe" must work without a device.
    """
    try:
        from . import _serve
    except ImportError as error:
        raise SystemExit(
            f"origami: {error}; an executor plugin needs: python3 -m pip install grpcio"
        ) from error
    _serve.main(provider)
