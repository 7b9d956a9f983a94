"""Packs a plugin into one file that origami can trust by its SHA-256.

    python3 -m origami.pack FOLDER FILE

FILE is a zip archive that python3 runs (https://docs.python.org/3/library/zipapp.html), with the Python sources of FOLDER, whose
__main__.py is what runs, and those of this package that a plugin needs. Equal sources give equal bytes. What the plugin imports from
the user's site-packages (grpcio, torch, …) is not in it, nor covered by its hash.
"""

from __future__ import annotations

import os
import pathlib
import sys
import zipfile

SHEBANG = b"#!/usr/bin/env python3\n"
# Of the package, by name: the rest is for other uses.
NEEDED = ("__init__.py", "plugin.py", "_serve.py", "_wire.py", "_certificate.py", "_cuda.py", "wire.binpb")
LEFT_OUT = ("tests",)


def pack(folder: pathlib.Path, file: pathlib.Path) -> None:
    here = pathlib.Path(__file__).parent
    entries = {f"origami/{name}": here / name for name in NEEDED}
    for path in folder.rglob("*.py"):
        inside = path.relative_to(folder)
        if inside.parts[0] not in LEFT_OUT:
            entries[inside.as_posix()] = path
    if "__main__.py" not in entries:
        raise SystemExit(f"{folder} has no __main__.py, which is what a plugin runs")
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "wb") as out:
        out.write(SHEBANG)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(entries):
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), entries[name].read_bytes())
    os.chmod(file, 0o755)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    pack(*map(pathlib.Path, sys.argv[1:]))
