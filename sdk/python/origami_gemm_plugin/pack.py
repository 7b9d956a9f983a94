"""Packs a plugin into one file that origami can trust by its SHA-256.

    python3 -m origami_gemm_plugin.pack FOLDER FILE [MODULE ...]

FILE is a zip archive that python3 runs (https://docs.python.org/3/library/zipapp.html). It holds the Python sources of
FOLDER, whose __main__.py is what runs, the package origami_gemm_plugin, and each MODULE named, such as
origami_gemm._cuda. Equal sources give equal bytes. What the plugin imports from the user's site-packages (grpcio,
torch, …) is not in the file, nor covered by its hash.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import zipfile
from collections.abc import Sequence

SHEBANG = b"#!/usr/bin/env python3\n"
LEFT_OUT = ("tests", "tools")


def pack(folder: pathlib.Path, file: pathlib.Path, modules: Sequence[str] = ()) -> None:
    entries = {}
    for path in pathlib.Path(__file__).parent.iterdir():
        if path.suffix == ".py" and path.name != "pack.py":
            entries[f"{__package__}/{path.name}"] = path.read_bytes()
    for name in modules:
        # Only with an __init__.py does a package of the archive come before an installed one of the same name.
        parents = name.split(".")[:-1]
        for depth in range(len(parents)):
            entries["/".join([*parents[: depth + 1], "__init__.py"])] = b""
        entries[name.replace(".", "/") + ".py"] = _source(name)
    for path in folder.rglob("*.py"):
        inside = path.relative_to(folder)
        if inside.parts[0] not in LEFT_OUT:
            entries[inside.as_posix()] = path.read_bytes()
    if "__main__.py" not in entries:
        raise SystemExit(f"{folder} has no __main__.py, which is what a plugin runs")
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "wb") as out:
        out.write(SHEBANG)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(entries):
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), entries[name])
    os.chmod(file, 0o755)


def _source(name: str) -> bytes:
    """The source of a module, as import finds it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise SystemExit(f"there is no module {name} in a separate file; put its folder on the PYTHONPATH")
    return pathlib.Path(spec.origin).read_bytes()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:])
