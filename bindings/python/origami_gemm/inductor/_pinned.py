"""Kernels of matrix products for torch.compile, chosen beforehand by origami, which this file does not need.

    import THIS_FILE
    THIS_FILE.enable()  # before anything is compiled, in the thread that compiles

A product of TABLE gets its one kernel, untimed. Others get what they get without max_autotune, one kernel of cuBLAS; with
max_autotune, Inductor times its list for them."""

import hashlib

import torch
from torch._inductor import config
from torch._inductor.lookup_table.choices import LookupTableChoices
from torch._inductor.select_algorithm import ExternKernelChoice

PARTS = ()
TABLE = {}


class Pinned(LookupTableChoices):
    _held = None

    def uuid(self):
        return hashlib.sha256(repr(TABLE).encode()).hexdigest()

    def _finalize_template_configs(self, template_choices, kernel_inputs, templates, op_name, kwarg_overrides=None):
        asked = template_choices, kernel_inputs, templates, op_name, kwarg_overrides
        if op_name == "addmm" and in_parts(PARTS):
            if more_follow(kernel_inputs, templates):
                self._held = [choice for choices in template_choices.values() for choice in choices]
                return []
            if between(templates):
                return super()._fallback(*asked)
        choices = super()._finalize_template_configs(*asked)
        self._held = None
        return choices

    def _create_lookup_choices(self, *asked):
        return super()._create_lookup_choices(*asked)[:1]

    def _fallback(self, template_choices, kernel_inputs, templates, op_name, kwarg_overrides=None):
        choices = super()._fallback(template_choices, kernel_inputs, templates, op_name, kwarg_overrides)
        choices = (self._held or []) + choices
        if config.max_autotune:
            return choices
        return [choice for choice in choices if isinstance(choice.template, ExternKernelChoice)][:1] or choices


def in_parts(versions):
    """Whether addmm asks for cuBLAS by itself and then, always, for the other templates: in these versions."""
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    return bool(versions) and versions[0] <= version <= versions[-1]


def more_follow(kernel_inputs, templates):
    """Whether addmm asks for cuBLAS and will ask for the other templates. Inductor's tuned_addmm says when."""
    tunes = config.max_autotune or config.max_autotune_gemm
    fp32 = kernel_inputs.dtype(1) == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "bfx9"
    empty = 0 in kernel_inputs.output_layout().size
    return tunes and not fp32 and not empty and all(isinstance(t, ExternKernelChoice) for t in templates)


def between(templates):
    """Whether addmm asks for another template by itself, between cuBLAS and those that it asks for last."""
    return bool(templates) and not any(isinstance(t, ExternKernelChoice) or t.uid == "triton::mm" for t in templates)


def enable():
    backends = [name for name in config.max_autotune_gemm_backends.split(",") if name.strip().upper() != "CPP"]
    config.max_autotune_gemm_backends = ",".join(backends)
    config.max_autotune_gemm = True  # without it, Inductor has no Triton kernel among the choices
    config.lookup_table.table = TABLE
    config.inductor_choices_class = Pinned
