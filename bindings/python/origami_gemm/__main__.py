"""`python -m origami_gemm` is the command origami, which is in the package's wheel."""

import importlib.metadata
import os
import pathlib
import shutil
import sys

from origami_gemm.errors import Error


def command() -> str:
    """The path of the command of this package: as pip installed it, or of the checkout, or on PATH."""
    try:
        files = importlib.metadata.files("origami-gemm") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    places = [pathlib.Path(file.locate()) for file in files if file.name == "origami"]
    places.append(pathlib.Path(__file__).resolve().parents[3] / "bin" / "origami")
    for place in places:
        if os.access(place, os.X_OK):
            return str(place.resolve())
    found = shutil.which("origami")
    if found is None:
        raise Error("the command origami is not in this installation; install a wheel, or run `make build`", "device")
    return found


def main() -> None:
    try:
        path = command()
    except Error as e:
        sys.exit(f"origami: {e}")
    # The executor of Triton kernels runs in the python3 on PATH: this one.
    os.environ["PATH"] = os.pathsep.join(filter(None, (os.path.dirname(sys.executable), os.environ.get("PATH"))))
    os.execv(path, ["origami", *sys.argv[1:]])


if __name__ == "__main__":
    main()
