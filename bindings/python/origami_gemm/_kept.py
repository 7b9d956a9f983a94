"""What was measured on this machine, kept for the next process."""

import json
import os
import pathlib
import tempfile

# The most of a file that is read. An entry has some 200 bytes.
MOST_BYTES = 1 << 20


def folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "origami"


def _of_others(found):
    """Whether other users decide what is in a file."""
    return os.name == "posix" and (found.st_mode & 0o022 != 0 or found.st_uid not in (0, os.geteuid()))


class Kept:
    """Ratios by name in a file. Without a file that can be read or written, nothing is kept. A file that is too large,
    that other users may write to, or no such file is begun again."""

    def __init__(self, folder):
        self._path = folder / "verified.json"

    def _read(self):
        try:
            with open(self._path, "rb") as file:
                if _of_others(os.fstat(file.fileno())):
                    return {}
                text = file.read(MOST_BYTES + 1)
            found = json.loads(text) if len(text) <= MOST_BYTES else {}
            return {k: v for k, v in found.items() if isinstance(v, float) and 0 < v < float("inf")}
        except (OSError, ValueError, AttributeError, RecursionError):
            return {}

    def get(self, name):
        return self._read().get(name)

    def put(self, name, ratio):
        text = json.dumps(self._read() | {name: ratio})
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._path.parent, delete=False) as file:
                new = file.name
                file.write(text)
        except OSError:
            return
        try:
            os.replace(new, self._path)
        except OSError:
            os.unlink(new)
