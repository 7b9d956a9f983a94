"""What the user asked for, from arguments or from the environment."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import pathlib

from origami_gemm import __version__, _arguments
from origami_gemm.errors import ArgumentTypeError, Error
from origami_gemm.lib import Model, load

VARIABLE = "ORIGAMI_INDUCTOR"
MOST = 64  # of the candidates that may be asked for
FORM = "1, or top=4,aten=auto,kernels=1, or 0"
ATEN = {"0": False, "1": True, "auto": "auto"}


@dataclasses.dataclass(frozen=True)
class Settings:
    """top: how many of the model's picks Inductor gets, or "auto". aten: whether cuBLAS stays among its choices; with
    "auto", the model says whether it is timed or taken. model: None is the one of this GPU. kernels: whether kernels
    that origami generates are choices."""

    top: int | str = 1
    aten: bool | str = "auto"
    model: Model | None = None
    kernels: bool = False

    def __post_init__(self):
        if self.top != "auto":
            top = _arguments.whole("top", self.top, 1, 1, MOST)
            object.__setattr__(self, "top", top)
        if self.aten != "auto":
            object.__setattr__(self, "aten", bool(_arguments.flag("aten", self.aten)))
        object.__setattr__(self, "kernels", bool(_arguments.flag("kernels", self.kernels)))
        if self.kernels and not self.aten:
            raise Error("kernels=True needs cuBLAS among the choices: a generated kernel is beside it; leave aten out")
        if self.model is not None and not isinstance(self.model, Model):
            raise ArgumentTypeError(f"model is {_arguments.shown(self.model)}; give an origami_gemm.Model")

    def key(self) -> str:
        """A text that is another one if other kernels may be picked: Inductor's caches are looked up with it. Equal
        installations have equal keys, so that machines can share a cache."""
        model = hashlib.sha256(_arguments.as_json(self.model._request)).hexdigest()[:16] if self.model else ""
        return (f"origami-gemm {__version__} {_content()} top={self.top} aten={self.aten} kernels={self.kernels} "
                f"{self.model or ''}{model}")


@functools.cache
def _content() -> str:
    """What the package and the library are, in a few letters."""
    digest = hashlib.sha256(pathlib.Path(load().path).read_bytes())
    for file in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def parse(text: str) -> Settings | None:
    """The settings that the environment variable says; None if it says no. Raises Error."""
    word = text.strip().lower()
    if word in ("", "0", "off", "false", "no"):
        return None
    if word in ("1", "on", "true", "yes"):
        return Settings()
    values = {}
    for part in word.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in ("top", "aten", "kernels") or name in values:
            raise _wrong(text)
        values[name] = value
    try:
        if values.get("top", "auto") != "auto":
            values["top"] = int(values["top"])
        if "aten" in values:
            values["aten"] = ATEN[values["aten"]]
        if "kernels" in values:
            values["kernels"] = {"0": False, "1": True}[values["kernels"]]
        return Settings(**values)
    except (ValueError, KeyError, Error):
        raise _wrong(text) from None


def _wrong(text: str) -> Error:
    return Error(f"{VARIABLE} is {_arguments.shown(text)}; give {FORM}")
