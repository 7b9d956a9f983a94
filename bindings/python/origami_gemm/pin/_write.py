"""Writes pins where programs look for configurations."""

from __future__ import annotations

import hashlib
import json
import pathlib

from origami_gemm.pin._choose import order, unwrapped, whole


def _dtypes(tuner, named):
    """Types of tensors as PyTorch writes them, in the order of the kernel's arguments, the positional ones first."""
    names = [n for n in named if n in tuner.arg_names and hasattr(named[n], "dtype")]
    return [t if (t := str(named[n].dtype)).startswith("torch.") else f"torch.{t}" for n in names]


def _entry(choice):
    config = choice.config
    return {"kwargs": config["kwargs"], "num_warps": config["num_warps"], "num_stages": config["num_stages"],
            "num_ctas": config.get("num_ctas", 1), "maxnreg": config.get("maxnreg"), "ir_override": None}


def _triton():
    import triton

    return triton.__version__


def in_order(launches):
    """Launches by their predicted times: where several have one key, the longest is written, whichever came first."""
    return sorted(launches, key=lambda one: (one[3].seconds or 0, order(one[3].config)))


def megatron(launches, arch, source="origami_gemm.pin"):
    """A table as Megatron Core reads it: <arch>.json in a folder of --triton-autotune-table-path."""
    kernels = {}
    for tuner, named, _, choice in in_order(launches):
        key = "|".join([f"{k}={named[k]}" for k in tuner.keys if k in named] + _dtypes(tuner, named))
        kernels.setdefault(unwrapped(tuner)[0].__name__, {})[key] = _entry(choice)
    return {"arch": arch.partition("@")[0], "triton": _triton(), "packages": {}, "source": source, "kernels": kernels}


def fla(launches):
    """Files by name as flash-linear-attention reads them in $FLA_CONFIG_DIR with FLA_CACHE_MODE=strict."""
    files = {}
    for tuner, named, _, choice in in_order(launches):
        name = unwrapped(tuner)[0].__name__
        key = [named[k] for k in tuner.keys if k in named] + _dtypes(tuner, named)
        text = json.dumps(key, separators=(",", ":"), sort_keys=True)
        file = files.setdefault(f"{name}.json", {"kernel_name": name, "triton_version": _triton(), "autotune_entries": {}})
        file["autotune_entries"][hashlib.md5(text.encode()).hexdigest()] = {"autotune_key": key, "config": _entry(choice)}
    return files


def table(choices):
    """A table by rows as vLLM and SGLang read it, of Choices by numbers of rows. A tuple of sizes is a level for each, as
    in vLLM's tables of LoRA."""
    out = {}
    for sizes, choice in choices.items():
        *outer, rows = map(str, sizes if isinstance(sizes, tuple) else (sizes,))
        at = out
        for size in outer:
            at = at.setdefault(size, {})
        at[rows] = whole(choice.config)
    return out


def save(files, folder):
    """Writes a table, or files by name, as JSON with sorted keys: the same pins are the same bytes."""
    if "kernels" in files and "arch" in files:
        files = {f"{files['arch']}.json": files}
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(files.items()):
        (folder / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
