"""Compiles a Triton kernel for an architecture without a GPU, in processes beside this one, and reads what comes out."""

from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import os
import re
import tempfile

from origami_gemm.errors import Error
from origami_gemm.pin import cubin, work

NAMES = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32", "fp64": "float64",
         "fp8e4nv": "float8_e4m3fn", "e4m3": "float8_e4m3fn", "fp8e5": "float8_e5m2", "i8": "int8", "u8": "uint8",
         "i16": "int16", "i32": "int32", "i64": "int64", "i1": "bool"}


class Tensor:
    """A tensor by its type, shape and strides. align is the bytes that divide its address, up to 16."""

    def __init__(self, dtype, shape, strides=None, align=16):
        name = str(dtype).rsplit(".", 1)[-1]
        self.dtype, self.shape, self.align = NAMES.get(name, name), tuple(int(n) for n in shape), int(align)
        if strides is None:
            strides, step = [], 1
            for n in reversed(self.shape):
                strides.insert(0, step)
                step *= n
        self.strides = tuple(int(s) for s in strides)

    @classmethod
    def of(cls, value):
        """What a tensor of PyTorch or of anything like it is, without its memory."""
        address = value.data_ptr()
        stride = value.stride() if callable(getattr(value, "stride", None)) else None
        return cls(value.dtype, value.shape, stride, min(16, address & -address) if address else 16)

    def data_ptr(self):
        return self.align % 16

    def ptr_range(self):
        return 0

    def stride(self, d=None):
        return self.strides if d is None else self.strides[d]

    def record(self):
        return [self.dtype, list(self.shape), list(self.strides), self.align]


def without_memory(value):
    """An argument as it may go to another process: tensors without their memory."""
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "data_ptr"):
        return Tensor.of(value)
    if hasattr(value, "block_shape") and hasattr(value, "base"):  # a tensor descriptor
        new = copy.copy(value)
        object.__setattr__(new, "base", without_memory(value.base))
        return new
    if isinstance(value, tuple):
        return tuple(map(without_memory, value))
    return value


class DoesNotFit(Exception):
    """Shared memory that the kernel needs and the device lacks."""


def _driver(capability, shared, sms=132):
    """A driver for Triton that touches no GPU."""
    from triton.backends.compiler import GPUTarget

    class Utils:
        @staticmethod
        def get_device_properties(_):
            return {"max_shared_mem": shared, "max_num_regs": 65536, "multiprocessor_count": sms, "warpSize": 32,
                    "sm_clock_rate": 1, "mem_clock_rate": 1, "mem_bus_width": 1}

        @staticmethod
        def load_binary(*_, **__):
            return 1, 1, 32, 0, 1024

    class Driver:
        utils, binary_ext = Utils(), "cubin"

        def get_current_target(self):
            return GPUTarget("cuda", capability, 32)

        def get_current_device(self):
            return 0

        def get_current_stream(self, *_):
            return 0

        def set_current_device(self, _):
            pass

        def map_python_to_cpp_type(self, kind):
            return kind

        def is_active(self):
            return True

        @staticmethod
        def launcher_cls(*_, **__):
            return lambda *_, **__: None

    return Driver()


def _early(limit):
    """Ends compiling where shared memory does not suffice, before LLVM and ptxas have to do with it. The number is the
    compiler's own: its pass is run on a copy of the kernel."""
    from triton._C.libtriton import ir, nvidia, passes
    from triton.backends.nvidia import compiler

    whole = compiler.CUDABackend.make_llir

    def shared(source, capability, version):
        with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
            file.write(str(source))
            file.flush()
            module = ir.parse_mlir_module(file.name, source.context)
        manager = ir.pass_manager(source.context)
        passes.ttgpuir.add_combine_tensor_select_and_if(manager)
        passes.ttgpuir.add_allocate_warp_groups(manager)
        passes.convert.add_scf_to_cf(manager)
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, capability, version)
        try:
            manager.run(module, "pin")
        except TypeError:
            manager.run(module)
        return module.get_int_attr("ttg.shared")

    def make_llir(self, source, metadata, options, capability):
        try:
            need = shared(source, capability, compiler.get_ptx_version_from_options(options, self.target.arch))
        except Exception:  # another version of Triton: the compiler says it later
            need = None
        if need is not None and need > limit:
            raise DoesNotFit(f"{need} B of shared memory of {limit} B")
        return whole(self, source, metadata, options, capability)

    compiler.CUDABackend.make_llir = make_llir


_work = None  # (kernel, arguments, list of keyword arguments): children inherit it


def _start(capability, limit):
    import triton

    triton.runtime.driver.set_active(_driver(capability, limit))
    try:
        _early(limit)
    except (ImportError, AttributeError):
        pass
    os.nice(3)


def _compile(index):
    kernel, args, variants = _work
    try:
        kernel.device_caches.clear()  # of the device before the fork
    except AttributeError:
        pass
    try:
        done = kernel.run(*args, grid=(1,), warmup=True, **variants[index])
        if hasattr(done, "result"):
            done = done.result()
        registers, frame, looped, told = cubin.resources(done.asm["cubin"], done.metadata.name, work.MEMORY)
        signature = getattr(getattr(done, "src", None), "signature", None) or {}
        return {"names": [n for n, kind in signature.items() if kind != "constexpr"], "ttgir": done.asm["ttgir"],
                "registers": registers, "spills": -(-frame // 4), "looped": looped, "told": told,
                "shared": done.metadata.shared, "ptx": done.asm["ptx"]}
    except BaseException as e:  # a child must not end with its kernel
        text = re.sub(r"\s+", " ", str(e)).strip()
        return {"error": f"{type(e).__name__}: {text[:200]}"}


def compile_all(kernel, args, variants, capability, limit, jobs=None):
    """Compiles a kernel with each of several sets of keyword arguments. Each result has the TTGIR and what the kernel
    takes of an SM, or an error."""
    global _work
    if "fork" not in multiprocessing.get_all_start_methods():
        raise Error("this system has no fork(), by which compilers inherit the kernel; use Linux", "device")
    jobs = max(1, min(jobs or os.cpu_count() or 1, len(variants)))
    _work = kernel, tuple(map(without_memory, args)), [{k: without_memory(v) for k, v in x.items()} for x in variants]
    try:
        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(jobs, context, _start, (capability, limit)) as pool:
            waiting = [pool.submit(_compile, i) for i in range(len(variants))]
            out = []
            for one in waiting:
                try:
                    out.append(one.result())
                except Exception as e:  # the compiler ended the process
                    out.append({"error": f"{type(e).__name__}: the compiler ended"})
            return out
    finally:
        _work = None
