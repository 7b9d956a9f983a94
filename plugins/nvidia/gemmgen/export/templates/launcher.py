"""{{.Problem}}, {{.Config}}

Written by `origami export`. It needs the NVIDIA driver and Python's standard library. Matrices are anything with a
data_ptr(), as tensors of PyTorch, or addresses in device memory. A context must be current, as PyTorch makes one:

    import torch, {{.Name}} as gemm
    kernel = gemm.Kernel()
    kernel(a, b, c, {{if .Scales}}scale_a, scale_b, {{end}}{{if .Bias}}bias, {{end}}{{if .Residual}}r, {{end}}stream=torch.cuda.current_stream().cuda_stream)
"""

import ctypes
import os

NAME = "{{.Name}}"
WORKSPACE = {{.Counters}} + {{.Partials}}  # bytes of device memory beside the matrices

_MAPS = {
{{- range .Maps}}
    "{{.Param}}": ("{{.Matrix}}", {{.Code}}, ({{index .Sizes 0}}, {{index .Sizes 1}}, {{index .Sizes 2}}), ({{index .Strides 0}}, {{index .Strides 1}}), ({{index .Box 0}}, {{index .Box 1}}, {{index .Box 2}})),
{{- end}}
}
_PARAMS = [
{{- range .Params}}
    ("{{.Name}}", "{{.Role}}", {{if eq .Role "map"}}None{{else}}{{pytype .Type}}{{end}}, {{.Value}}),
{{- end}}
]


def _check(result, doing):
    if result:
        name = ctypes.c_char_p()
        _driver.cuGetErrorName(result, ctypes.byref(name))
        raise RuntimeError(f"{doing}: {(name.value or b'unknown').decode()} ({result})")


_driver = None


class Kernel:
    """The kernel, loaded into the current context."""

    def __init__(self, ptx=os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME + ".ptx")):
        global _driver
        if _driver is None:
            _driver = ctypes.CDLL("libcuda.so.1")
        with open(ptx, "rb") as file:
            text = file.read() + b"\0"
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(_driver.cuModuleLoadData(ctypes.byref(module), text), "loading " + ptx)
        _check(_driver.cuModuleGetFunction(ctypes.byref(self._function), module, NAME.encode()), "finding " + NAME)
        _check(_driver.cuFuncSetAttribute(self._function, 8, {{.SharedMemory}}), "asking for shared memory")
        self._workspace = ctypes.c_uint64(0)
        if WORKSPACE:
            _check(_driver.cuMemAlloc_v2(ctypes.byref(self._workspace), ctypes.c_size_t(WORKSPACE)), "allocating")
            _check(_driver.cuMemsetD8_v2(self._workspace, 0, ctypes.c_size_t({{.Counters}})), "clearing")

    def __call__(self, a, b, c, {{if .Scales}}scale_a, scale_b, {{end}}{{if .Bias}}bias, {{end}}{{if .Residual}}r, {{end}}alpha=1, beta=0, stream=0):
        """Enqueues {{.Formula}}{{if not .Adds}}; beta has to be 0{{end}}. Launches that overlap need a Kernel each.{{if .Scales}} Scales are
        tensors of fp32, of one element or one for each row of A, or column of B.{{end}}"""
{{- if not .Adds}}
        if beta != 0:
            raise ValueError("this kernel does not read C; export one with --add")
{{- end}}
        address = lambda m: m.data_ptr() if hasattr(m, "data_ptr") else int(m)
        values = {
            "a": address(a), "b": address(b), "c": address(c), {{if .Bias}}"bias": address(bias), {{end}}"r": address({{if .Residual}}r{{else}}c{{end}}), "alpha": alpha, "beta": beta,
{{- if .Scales}}
            "scale_a": address(scale_a), "step_a": int(scale_a.numel() > 1), "scale_b": address(scale_b), "step_b": int(scale_b.numel() > 1),
{{- end}}
            "counters": self._workspace.value, "partials": self._workspace.value + {{.Counters}},
        }
        arguments = []
        for name, role, kind, value in _PARAMS:
            if role == "map":
                arguments.append(self._map(name, values))
            else:
                arguments.append(kind(value if role == "constant" else values[role]))
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(x) for x in arguments])
        _check(
            _driver.cuLaunchKernel(
                self._function, {{index .Grid 0}}, {{index .Grid 1}}, {{index .Grid 2}}, {{.Threads}}, 1, 1, {{.SharedMemory}},
                ctypes.c_void_p(stream), pointers, None,
            ),
            "launching " + NAME,
        )

    def _map(self, name, values):
        matrix, dtype, sizes, strides, box = _MAPS[name]
        room = (ctypes.c_uint8 * 192)()
        room = (ctypes.c_uint8 * 128).from_buffer(room, -ctypes.addressof(room) % 64)  # aligned to 64 bytes
        _check(
            _driver.cuTensorMapEncodeTiled(
                room, dtype, 3, ctypes.c_void_p(values[matrix]), (ctypes.c_uint64 * 3)(*sizes),
                (ctypes.c_uint64 * 2)(*strides), (ctypes.c_uint32 * 3)(*box), (ctypes.c_uint32 * 3)(1, 1, 1),
                # Not interleaved, 128-byte swizzle, lines to the L2 or pairs of them (slower where rows begin within a line),
                # zeros outside.
                0, 3, 2 if strides[0] % 128 else 3, 0,
            ),
            "describing " + name,
        )
        return room
