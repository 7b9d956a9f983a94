"""Frozen dataclasses with slots, as dataclasses makes them, without its import and its code generation: these took half of
the time of `import origami_gemm`. dataclasses' own functions take them too."""

import operator


class _Fields:
    """The fields, for dataclasses.replace, asdict and fields, made when one of them asks."""

    def __get__(self, _, owner):
        import dataclasses

        given = [(name, kind, *([owner.DEFAULTS[name]] if name in owner.DEFAULTS else []))
                 for name, kind in owner.__annotations__.items()]
        fields = dataclasses.make_dataclass(owner.__name__, given).__dataclass_fields__
        owner.__dataclass_fields__ = fields
        return fields


def record(cls):
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    values_of = operator.attrgetter(*names)
    settled = {}

    def __init__(self, *values, **named):
        if len(values) < len(names):
            try:
                values += tuple(named.pop(name) if name in named else defaults[name] for name in names[len(values):])
            except KeyError as e:
                raise TypeError(f"{cls.__name__}() is missing {e}") from None
        if named or len(values) > len(names):
            raise TypeError(f"{cls.__name__}() takes {', '.join(names)}")
        for put, value in zip(settled["setters"], values):
            put(self, value)

    def __eq__(self, other):
        return values_of(self) == values_of(other) if other.__class__ is self.__class__ else NotImplemented

    def __repr__(self):
        return f"{cls.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __setattr__(self, name, _):
        raise AttributeError(f"a {cls.__name__} cannot be changed")

    made = {"__init__": __init__, "__eq__": __eq__, "__hash__": lambda self: hash(values_of(self)), "__repr__": __repr__,
            "__setattr__": __setattr__, "__delattr__": lambda self, name: __setattr__(self, name, None),
            "__reduce__": lambda self: (type(self), values_of(self)), "__slots__": names, "__match_args__": names,
            "__dataclass_fields__": _Fields(), "DEFAULTS": defaults}
    own = {name: value for name, value in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    new = type(cls)(cls.__name__, cls.__bases__, made | own)
    settled["setters"] = [vars(new)[name].__set__ for name in names]
    return new
