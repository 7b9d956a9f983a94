"""What differs between versions of PyTorch's Inductor, in one table. Imports no torch.

A difference is recognised by what is there, not by a number, so that a newer PyTorch is tried. What then fails, fails
open. tests/torch_sources.py compares the table, and all else that is used of Inductor, with the sources in PyTorch's
wheels."""

from __future__ import annotations

import typing

# The versions whose sources were compared. An older one is left alone, as it has nothing to extend.
CHECKED = ((2, 10), (2, 11), (2, 12), (2, 13), (2, 14), (2, 15))


# The versions whose addmm asks for cuBLAS by itself and then, always, for the other templates. Only their sources tell.
PARTS = ((2, 12), CHECKED[-1])


class Difference(typing.NamedTuple):
    """since is the first version in which pattern, a regular expression, is found in a file of torch/_inductor."""

    since: tuple[int, int]
    file: str
    pattern: str
    what: str


DIFFERENCES = (
    Difference((2, 11), "sizevars.py", r"def optimization_hints_with_override\(",
               "it gives the hints of dynamic sizes; before, size_hints with a fallback does"),
    Difference((2, 11), "select_algorithm.py", r'buffer\.annotations\["ktc"\]',
               "a buffer names the choice that it was made of; before, an epilogue of any size becomes part of a single kernel"),
    Difference((2, 11), "graph.py", r"self\.buffer_layout_constraints",
               "a graph keeps the strides that a choice needs; before, the choice fixes them"),
    Difference((2, 12), "choices.py", r"must implement uuid\(\)",
               "a handler's uuid() is in the keys of caches; before, the pickled function that makes the handler is"),
    Difference((2, 12), "kernel/mm.py", r"kernel_inputs_aten = MMKernelInputs\(",
               "addmm asks for cuBLAS by itself, with the bias as a row, and then for the other templates"),
    Difference((2, 12), "kernel/mm.py", r"node, _ = autotune_select_algorithm\(",
               "autotune_select_algorithm returns the chosen kernel too"),
    Difference((2, 12), "../utils/_config_module.py", r"user_override: ContextVar",
               "settings are a thread's, and autograd's threads have those of the thread that asks for gradients"),
    Difference((2, 12), "config.py", r"^pre_grad_pass_timing: ",
               "a pass before gradients says whether it runs before the cache is asked"),
    Difference((2, 12), "lookup_table/choices.py", r"\{\*\*base_kwargs, \*\*c\}",
               "an entry of the lookup table may have some of the parameters; before, it has all"),
    Difference((2, 13), "kernel/mm.py", r"kernel_inputs_aten, \[addmm_contiguous_subgraph_template\]",
               "addmm asks for this template by itself too"),
    Difference((2, 14), "heuristics/template/params.py", r"class DictKernelTemplateParams\(",
               "the module is here; before, it is template_heuristics/params.py"),
    Difference((2, 15), "choices.py", r"def register_inductor_choices\(",
               "handlers of several packages are composed; before, config.inductor_choices_class makes the only one"),
)


def number(text: str) -> tuple[int, int]:
    """The version in the text of torch.__version__."""
    major, minor = text.split("+")[0].split(".")[:2]
    return int(major), int(minor)


def template_parameters():
    """The class DictKernelTemplateParams."""
    try:
        from torch._inductor.heuristics.template.params import DictKernelTemplateParams
    except ImportError:
        from torch._inductor.template_heuristics.params import DictKernelTemplateParams
    return DictKernelTemplateParams


def registers():
    """The functions that register and unregister a handler. None where there are none."""
    import torch

    if number(torch.__version__) < (2, 15):
        return None  # the import below takes a second
    from torch._inductor import choices

    return getattr(choices, "register_inductor_choices", None) and (
        choices.register_inductor_choices, choices.unregister_inductor_choices)
