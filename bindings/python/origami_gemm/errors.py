"""What origami raises."""


class Error(RuntimeError):
    """A failure in one line: what was wrong, where, and what to do. kind is "input" for a wrong request, "device" for a
    missing library or GPU, and "internal" or "plugin" for a failure that is not the caller's fault."""

    kind: str

    def __init__(self, message: object, kind: str = "input") -> None:
        super().__init__("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(message)))
        self.kind = kind


class ArgumentTypeError(Error, TypeError):
    """An argument of the wrong type. It is an Error like all others, and a TypeError for code that expects one."""
