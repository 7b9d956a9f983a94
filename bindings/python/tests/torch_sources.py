"""Compares what the package uses of Inductor, and the table of what differs by version, with the sources in PyTorch's wheels.

    python3 torch_sources.py                  # every version of the table, and the newest on the package index
    python3 torch_sources.py 2.14.0 newest

It reads the smallest wheel of a version, which is macOS's, and needs pip and no torch. What broke is printed, a line each."""

import ast
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from origami_gemm.inductor import ARGUMENTS, _versions  # noqa: E402

NEWEST = "newest"
# The arguments that functions of torch/_inductor are called with, or override, in their order.
SIGNATURES = {
    "choices.py": {
        "InductorChoices._finalize_template_configs": ("self", *ARGUMENTS),
        "InductorChoices.get_ktc": ("self", "kernel_inputs", "template", "op_name", "kwarg_overrides"),
        "InductorChoices.get_template_configs": ("self", "kernel_inputs", "templates", "op_name", "kwarg_overrides"),
        "InductorChoices.can_fuse_vertical": ("scheduler", "node1", "node2", "shared_data_score"),
    },
    "kernel_template_choice.py": {
        "KernelTemplateChoice.__init__": ("self", "template", "params", "extra_kwargs", "layout", "inputs"),
        "KernelTemplateChoice.choice": ("self",),
    },
    "kernel_inputs.py": {
        **{f"KernelInputs.{name}": ("self",) for name in ("device_type", "device", "shapes_symbolic", "dtypes")},
        "KernelInputs.nodes": ("self", "reorder"),
        "KernelInputs.dtype": ("self", "idx"),
        "MMKernelInputs.mnk_symbolic": ("self",),
        "MMKernelInputs.mat1mat2": ("self",),
        "MMKernelInputs.out_dtype": ("self",),
        "MMKernelInputs.output_layout": ("self", "flexible"),
    },
    "sizevars.py": {
        "SizeVarAllocator.statically_known_true": ("self", "expr"),
        "SizeVarAllocator.statically_known_equals": ("self", "left", "right"),
    },
    "graph.py": {"GraphLowering.get_numel": ("self", "buffer_name")},
    "ir.py": {"Loops.inner_fn_opcount": ("self",), "Buffer.freeze_layout": ("self",)},
    "scheduler.py": {f"BaseSchedulerNode.{name}": ("self",)
                     for name in ("get_nodes", "get_outputs", "is_template", "get_template_node")},
    "lookup_table/choices.py": {
        "LookupTableChoices.make_lookup_key": ("self", "kernel_inputs", "op_name", "include_device"),
        "LookupTableChoices._fallback": ("self", "template_choices", "kernel_inputs", "templates", "op_name", "kwarg_overrides"),
    },
}
# What else a file has, as regular expressions.
TEXTS = {
    "config.py": [r"^inductor_choices_class: ", r"^max_autotune = ", r"^max_autotune_gemm = ", r"^max_autotune_gemm_backends = ",
                  r"^multi_kernel_hints: ", r"^pre_grad_custom_pass: ", r"^post_grad_custom_pre_pass: ",
                  r"^class lookup_table:", r"^    table: "],
    "kernel/mm.py": [r"^mm_template = TritonTemplate\(", r"^persistent_tma_mm_template = TritonTemplate\(",
                     r"^scaled_mm_device_tma_epilogue_scaling_template = TritonTemplate\(", r"^aten_addmm = ExternKernelChoice\("],
    "kernel/bmm.py": [r"^bmm_template = TritonTemplate\("],
    "select_algorithm.py": [r"^class ExternKernelChoice", r"^class TritonTemplate\(", r"^class AlgorithmSelectorCache"],
    "ir.py": [r"^class TritonTemplateBuffer\(", r"^class FlexibleLayout\("],
    "graph.py": [r"self\.unaligned_buffers", r"self\.cpp_wrapper\b"],
    "virtualized.py": [r"self\._key: str = ", r"^_choices: Virtualized", r"set_choices_handler"],
    "custom_graph_pass.py": [r"^class CustomGraphPass\("],
}


def arguments(tree):
    """The names of the arguments of each function of a module, and of methods as Class.method."""
    found = {}
    for outer in tree.body:
        inside = [(outer.name + ".", one) for one in outer.body] if isinstance(outer, ast.ClassDef) else [("", outer)]
        for prefix, one in inside:
            if isinstance(one, ast.FunctionDef):
                a = one.args
                found[prefix + one.name] = tuple(x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs))
    return found


def broken(version, read):
    """What is not as expected in a version. read gives the text of a file of torch/_inductor, or None."""
    for file in sorted({*SIGNATURES, *TEXTS}):
        text = read(file)
        if text is None:
            yield f"{file} is not there"
            continue
        found = arguments(ast.parse(text))
        for name, wanted in SIGNATURES.get(file, {}).items():
            if found.get(name) != wanted:
                yield f"{file}: {name} takes {found.get(name)}, not {wanted}"
        for pattern in TEXTS.get(file, []):
            if not re.search(pattern, text, re.MULTILINE):
                yield f"{file}: nothing matches {pattern}"
    for d in _versions.DIFFERENCES:
        there = bool(re.search(d.pattern, read(d.file) or "", re.MULTILINE))
        if there != (version >= d.since):
            yield f"{d.file}: {d.pattern} is {'there' if there else 'not there'}; the table has it since {d.since} ({d.what})"


def wheel(version, folder):
    """The wheel of a version, or of the newest."""
    name = "torch" if version == NEWEST else f"torch=={version}"
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--only-binary", ":all:", "--platform", "macosx_30_0_arm64", "--python-version", "3.12", "--dest", folder,
                    name], check=True)
    return next(pathlib.Path(folder).glob("torch-*.whl"))


def main(versions):
    failed = False
    for version in versions or [*(f"{major}.{minor}.*" for major, minor in _versions.CHECKED), NEWEST]:
        with tempfile.TemporaryDirectory() as folder:
            file = wheel(version, folder)
            with zipfile.ZipFile(file) as archive:
                names = set(archive.namelist())

                def read(name):
                    path = f"torch/{name[3:]}" if name.startswith("../") else f"torch/_inductor/{name}"
                    return archive.read(path).decode() if path in names else None

                text = file.name.split("-")[1]
                lines = list(broken(_versions.number(text), read))
        failed |= bool(lines)
        new = " (newer than the table)" if _versions.number(text) > _versions.CHECKED[-1] else ""
        print(f"torch {text}{new}: {len(lines) or 'nothing'} broke", *lines, sep="\n  ", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
