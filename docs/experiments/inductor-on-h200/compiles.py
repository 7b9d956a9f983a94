"""Compiles the kernels that measure.py runs with origami's picks, for an H200 that need not be there: shared memory,
registers and spills of each.

    python3 compiles.py [--top 4] [--only NAME] [--pad] [--out RESULT.json]

Needs torch with Triton and liborigami (`make lib`), no GPU. Tensors are fake and the device's properties are an H200's.
Everything else is real: Inductor's passes, its template, the fused epilogue, Triton and ptxas. Each of the picks is
compiled as if it had been chosen. --pad compiles the products as they are if Inductor pads odd sizes, which it decides
by timing. The status is 1 if a kernel does not compile, or would not start on an H200.
"""

import argparse
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from unittest import mock

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(CHECKOUT / "bindings" / "python"), str(pathlib.Path(__file__).resolve().parent)]

import torch  # noqa: E402
import torch._inductor.compile_fx as compile_fx  # noqa: E402
from torch._dynamo.device_interface import CudaInterface  # noqa: E402
from torch._inductor import config, select_algorithm  # noqa: E402
from torch._inductor.codecache import PyCodeCache  # noqa: E402
from torch._inductor.fx_passes import pad_mm  # noqa: E402
from torch._inductor.runtime.hints import DeviceProperties  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402
import triton  # noqa: E402

import origami_gemm.inductor as oi  # noqa: E402
import workloads  # noqa: E402
from origami_gemm import Model  # noqa: E402

H200 = DeviceProperties(type="cuda", index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536,
                        max_threads_per_multi_processor=2048, warp_size=32)
SHARED = 227 << 10  # bytes of a block, CUDA C++ Programming Guide, compute capability 9.0
REGISTERS = 65536  # of a multiprocessor
MATRIX = re.compile(r"\b[HQ]G?MMA\b")
LOCAL = re.compile(r"\b(?:LDL|STL)\b")
CUOBJDUMP = pathlib.Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


class Generated(BaseException):
    """The source of a graph, in place of its load on the GPU. Inductor wraps an Exception in its own."""


class Properties:
    """What torch.cuda.get_device_properties says of an H200, as far as Inductor asks."""

    name, major, minor, multi_processor_count, warp_size = "NVIDIA H200", 9, 0, 132, 32
    regs_per_multiprocessor, max_threads_per_multi_processor = 65536, 2048
    total_memory, shared_memory_per_block_optin, L2_cache_size = 141 << 30, SHARED, 60 << 20
    gcnArchName = ""


def generated(lowered):
    raise Generated(lowered.codegen()[0].value)


@contextlib.contextmanager
def h200(pad):
    with contextlib.ExitStack() as stack:
        for patch in (
            mock.patch.object(DeviceProperties, "create", staticmethod(lambda _: H200)),
            mock.patch.object(torch._inductor.utils, "is_big_gpu", lambda *_: True),
            mock.patch.object(torch.cuda, "get_device_capability", lambda *_: (9, 0)),
            mock.patch.object(torch.cuda, "get_device_properties", lambda *_: Properties),
            mock.patch.object(torch.cuda, "current_device", lambda: 0),
            mock.patch.object(CudaInterface, "get_device_properties", lambda *_: Properties),
            mock.patch.object(CudaInterface, "current_device", lambda: 0),
            mock.patch.object(CudaInterface, "is_bf16_supported", lambda *_, **__: True),
            mock.patch.object(torch._inductor.scheduler, "has_triton", lambda: True),
            mock.patch.object(torch._inductor.runtime.triton_helpers, "set_driver_to_gpu", lambda: None),
            mock.patch.object(torch.utils._triton, "triton_hash_with_backend", lambda: "none"),
            mock.patch.object(torch._inductor.graph.GraphLowering, "compile_to_module", generated),
            mock.patch.object(pad_mm, "has_triton", lambda: True),
            mock.patch.object(pad_mm, "_should_pad", lambda *_: pad),
            config.patch(max_autotune=True, fx_graph_cache=False, compile_threads=1, force_disable_caches=True,
                         use_static_cuda_launcher=False),
        ):
            stack.enter_context(patch)
        yield


def source(spec, nth):
    """Inductor's program for a product, if the nth of the choices is the fastest, and what that is. None beyond the
    last."""
    taken = []

    def call(_, name, choices, input_nodes, layout, **__):
        taken.append(choices[nth].description if nth < len(choices) else None)
        return choices[min(nth, len(choices) - 1)].output_node()

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.device("cuda"):
        arguments = workloads.shapes(spec)
    graph = torch.fx.symbolic_trace(workloads.FUNCTIONS[spec["operation"]])
    with mock.patch.object(select_algorithm.AlgorithmSelectorCache, "__call__", call), torch.no_grad():
        try:
            compile_fx.compile_fx(graph, arguments)
        except Generated as e:
            return e.args[0], taken
    raise RuntimeError("Inductor compiled nothing")


def kernels(program):
    """The Triton kernels of a program: name and source."""
    return re.findall(r"(\w+) = async_compile\.triton\('\w+', '''(.*?)''', device_str", program, flags=re.S)


def spills_in_loop(code):
    """How many instructions of a kernel's machine code move spilled registers between its first matrix instruction and
    its last: in the loop over K, and not only in the epilogue."""
    lines = code.splitlines()
    matrix = [i for i, line in enumerate(lines) if MATRIX.search(line)]
    return sum(bool(LOCAL.search(line)) for line in lines[matrix[0]:matrix[-1]]) if matrix else 0


def compiled(name, text):
    """What Triton and ptxas make of a kernel."""
    begin = time.perf_counter()
    kernel = getattr(PyCodeCache.load(text), name)
    kernel.precompile(warm_cache_only=True)
    found = kernel.compile_results[0].kernel
    asm = found.asm
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(asm["cubin"])
        cubin.flush()
        usage, code = (subprocess.run([CUOBJDUMP, form, cubin.name], capture_output=True, text=True).stdout
                       for form in ("-res-usage", "-sass"))
    numbers = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", usage))
    threads = 32 * found.metadata.num_warps
    shared, registers = found.metadata.shared, int(numbers["REG"])
    return {"kernel": name, "shared": shared, "registers": registers, "stack": int(numbers["STACK"]),
            "spills_in_loop": spills_in_loop(code), "warps": found.metadata.num_warps,
            "seconds": round(time.perf_counter() - begin, 2),
            "wgmma": "wgmma" in asm["ptx"], "starts": shared <= SHARED and registers * threads <= REGISTERS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=int, default=4)
    parser.add_argument("--only", default="", help="products with this in their name")
    parser.add_argument("--pad", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    model, rows, bad = Model("sm90", "h200"), {}, 0
    for spec in workloads.products(False):
        if options.only not in spec["name"]:
            continue
        rows[spec["name"]] = []
        for nth in range(options.top):
            with h200(options.pad), fresh_cache(), oi.enable(options.top, aten=False, model=model):
                try:
                    program, taken = source(spec, nth)
                    found = [compiled(*k) for k in kernels(program)]
                except Exception as e:
                    found, taken = [{"failed": f"{type(e).__name__}: {e}"[:600], "starts": False}], []
            bad += sum(not f["starts"] for f in found)
            rows[spec["name"]].append({"choice": taken, "kernels": found})
            print(spec["name"], nth, taken, *found, sep="\n  ", flush=True)
            if options.out:
                pathlib.Path(options.out).write_text(json.dumps(rows, indent=1))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
