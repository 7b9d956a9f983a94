"""Reads the text of TTGIR, Triton's last form of a kernel that still has tensors and layouts.

    function = parse(text)
    function.body is a list of Op, in which loops and branches have bodies of their own.
"""

from __future__ import annotations

import functools
import re

LOCATION = re.compile(r' loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)')
OPERATION = re.compile(r'(?:(%[\w$.-]+(?:, %[\w$.-]+)*)(?::(\d+))? = )?"?([a-z_]\w*\.[\w.]+)"?(.*)$')
VALUE = re.compile(r'%[\w$.-]+(?:#\d+)?')
TENSOR = re.compile(r'(?:!ttg\.memdesc|tensor)?<((?:\d+x)*)(.*)$')
POINTER = re.compile(r"!tt\.ptr<([\w.]+)(?:, \d+)?>")
BITS = re.compile(r'(?:bf|f|i|tf)(\d+)')


class ParseError(ValueError):
    """The text is no TTGIR that this reader knows."""


class Op:
    """An operation. types are of its results, operands are names of values, text is what follows the name."""

    __slots__ = ("args", "bodies", "extra", "name", "operands", "results", "text", "types")

    def __init__(self, name, results, operands, text, types):
        self.name, self.results, self.operands, self.text, self.types = name, results, operands, text, types
        self.bodies, self.args, self.extra = [], [], None


class Type:
    """A type: shape (empty for a scalar), element as in "f32" or "ptr:bf16", and a layout or None."""

    __slots__ = ("bits", "element", "layout", "shape", "size", "_regs")

    def __init__(self, shape, element, layout):
        self.shape, self.element, self.layout = shape, element, layout
        self.size = 1
        for n in shape:
            self.size *= n
        found = BITS.search(element)
        self.bits = 64 if element.startswith("ptr") else int(found[1]) if found else 8 if element.startswith("f8") else 32
        self._regs = None

    @property
    def regs(self):
        """Elements that a thread holds."""
        if self._regs is None:
            self._regs = self.layout.per_thread(self.shape) if self.layout and self.shape else 1
        return self._regs


class Distributed:
    """A layout whose dims() has, per dimension: elements per thread in a row, lanes, warps, repetitions."""

    def per_thread(self, shape):
        n = 1
        for s, _, _, r in self.dims(shape):
            n *= s * r
        return n


class Blocked(Distributed):
    """Also of a slice of one, with the dimension that the slice lacks at 1 after expand()."""

    def __init__(self, size, threads, warps, order):
        self.size, self.threads, self.warps, self.order = size, threads, warps, order

    def dims(self, shape):
        for n, s, t, w in zip(shape, self.size, self.threads, self.warps):
            if n == 1:
                yield 1, 1, 1, 1
                continue
            s = min(s, n)
            t = min(t, max(1, n // s))
            yield s, t, min(w, max(1, n // (s * t))), max(1, -(-n // (s * t * w)))


class Mma(Distributed):
    def __init__(self, version, warps, instruction):
        self.version, self.warps, self.instruction = version, warps, instruction

    def dims(self, shape):
        rank = len(shape)
        instruction = ([1] * rank + self.instruction[:2] if self.version > 2 else [1] * rank + self.instruction)[-rank:]
        for i, (n, w, m) in enumerate(zip(shape, self.warps[-rank:], instruction)):
            if n == 1:
                yield 1, 1, 1, 1
                continue
            m = max(1, min(m, n))
            last = i == rank - 1
            yield 2 if last else 1, 4 if last else 8 if i == rank - 2 else 1, w, max(1, -(-n // (m * w))) * max(
                1, m // (8 if i >= rank - 2 else 1))


class Operand:
    def __init__(self, index, parent):
        self.index, self.parent = index, parent

    def per_thread(self, shape):
        p = self.parent
        rows, cols = shape[-2], shape[-1]
        if isinstance(p, Mma):
            warps = p.warps[-2] if self.index == 0 else p.warps[-1]
            return max(1, rows * cols // (32 * warps), (4 if self.index == 0 else 2))
        if not isinstance(p, Blocked):
            return max(1, rows * cols // 32)
        d = [s * r for s, _, _, r in p.dims(shape)]
        return d[-2] * cols if self.index == 0 else rows * d[-1]

    def dims(self, shape):
        return [(1, 1, 1, n) for n in shape]


class Slice(Distributed):
    def __init__(self, dim, parent):
        self.dim, self.parent = dim, parent

    def dims(self, shape):
        d = list(self.parent.dims([*shape[:self.dim], 1, *shape[self.dim:]]))
        return d[:self.dim] + d[self.dim + 1:]


class Linear:
    def __init__(self, register, lane, warp):
        self.register, self.lane, self.warp = register, lane, warp

    def dims(self, shape):
        out = []
        for d in range(len(shape)):
            run = 1
            for b in self.register:
                if b[d] == run and not any(b[:d] + b[d + 1:]):
                    run *= 2
            n = [2 ** sum(1 for b in bases if b[d]) for bases in (self.register, self.lane, self.warp)]
            out.append((min(run, n[0]), n[1], n[2], max(1, n[0] // run)))
        return out

    def per_thread(self, shape):
        return 2 ** len(self.register)


class Shared:
    def per_thread(self, shape):
        return 1


def numbers(text, key):
    found = re.search(key + r" = \[([^\]]*)\]", text)
    return [int(x) for x in found[1].split(",")] if found and found[1].strip() else []


def bases(text, key):
    found = re.search(key + r" = \[((?:\[[^\]]*\](?:, )?)*)\]", text)
    return [[int(x) for x in b.split(",")] for b in re.findall(r"\[([^\]]*)\]", found[1])] if found else []


class Types:
    """The types of one text: names of layouts differ from text to text."""

    def __init__(self):
        self.aliases, self.layout_of, self.type_of = {}, functools.cache(self._layout), functools.cache(self._type)

    def _layout(self, text):
        text = text.strip()
        if text in self.aliases:
            return self.layout_of(self.aliases[text])
        if text.startswith("#ttg.blocked"):
            return Blocked(*(numbers(text, k) for k in ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")))
        if text.startswith("#ttg.nvidia_mma"):
            return Mma(int(re.search(r"versionMajor = (\d+)", text)[1]), numbers(text, "warpsPerCTA"),
                       numbers(text, "instrShape"))
        if text.startswith("#ttg.slice"):
            dim, parent = re.match(r"#ttg\.slice<\{dim = (\d+), parent = (.*)\}>$", text).groups()
            return Slice(int(dim), self.layout_of(parent))
        if text.startswith("#ttg.dot_op"):
            index, parent = re.match(r"#ttg\.dot_op<\{opIdx = (\d+), parent = (.*?)(?:, kWidth = \d+)?\}>$", text).groups()
            return Operand(int(index), self.layout_of(parent))
        if text.startswith("#ttg.linear"):
            return Linear(bases(text, "register"), bases(text, "lane"), bases(text, "warp"))
        return Shared() if "shared" in text else None

    def _type(self, text):
        text = text.strip()
        if text.startswith(("tensor<", "!ttg.memdesc<", "<", "!ttng.tensordesc", "!tt.tensordesc")):
            if "tensordesc<" in text:
                inner = self.type_of(text[text.index("<") + 1:].rstrip(">") + ">" if "tensor<" in text else "i64")
                return Type((), "desc", inner.layout) if not inner.shape else Type((), "desc", None)
            found = TENSOR.match(text)
            if not found:
                raise ParseError(f"unknown type {text[:80]!r}")
            shape = tuple(int(n) for n in found[1].split("x") if n)
            rest = found[2][:-1]
            depth, end = 0, len(rest)
            for i, c in enumerate(rest):
                if c == "<":
                    depth += 1
                elif c == ">":
                    depth -= 1
                elif c == "," and depth == 0:
                    end = i
                    break
            layouts = [p for p in split(rest[end + 1:]) if p.strip().startswith("#") and "tensor_memory" not in p]
            return Type(shape, element(rest[:end]), self.layout_of(layouts[0]) if layouts else None)
        return Type((), element(text), None)


def element(text):
    text = text.strip()
    if text.startswith("!tt.ptr<"):
        return "ptr:" + text[8:].split(",")[0].rstrip(">")
    return text


def split(text):
    """Parts between commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        if c in "<({[":
            depth += 1
        elif c in ")}]" or c == ">" and text[i - 1] != "-":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    parts.append(text[begin:])
    return [p for p in (p.strip() for p in parts) if p]


class Function:
    __slots__ = ("args", "body", "name", "warps")

    def __init__(self, name, args, warps):
        self.name, self.args, self.warps, self.body = name, args, warps, []


def parse(text: str, names=()) -> Function:
    """Parses the one public function of a module. names are its arguments', which Triton before 3.6 does not write."""
    types = Types()
    function, stack = None, []
    for line in text.split("\n"):
        if not line or line.startswith("#loc"):
            continue
        if line[0] == "#":
            name, _, layout = line.partition(" = ")
            types.aliases[name] = layout.strip()
            continue
        if line.startswith("  tt.func"):
            written = dict(re.findall(r'(%[\w$.-]+): (?:(?!%).)*? loc\("([\w.]+)"', line))
        if " loc(" in line:
            line = LOCATION.sub("", line)
        line = line.strip()
        if line.startswith("module"):
            warps = re.search(r'"ttg\.num-warps" = (\d+)', line)
            warps = int(warps[1]) if warps else 4
        elif line.startswith("tt.func"):
            if " private " in line:
                stack.append([])  # calls to it are unknown operations
                continue
            found = re.match(r"tt\.func (?:public )?@([\w$.]+|\"[^\"]*\")\((.*)\)", line)
            args = []
            for part in split(found[2]):
                name, _, rest = part.partition(": ")
                name, kind = name.strip(), re.sub(r"\s*\{.*$", "", rest).strip()
                args.append((name, written.get(name, name[1:]), types.type_of(kind)))
            if len(names) == len(args) and all(re.fullmatch(r"arg\d+", a[1]) for a in args):
                args = [(a[0], name, a[2]) for a, name in zip(args, names)]
            function = Function(found[1].strip('"'), args, warps)
            stack.append(function.body)
        elif line.startswith("}"):
            if len(stack) == 0:
                continue  # of the module
            if "else" in line or line.startswith("} do"):
                stack.pop()
                stack[-1][-1].bodies.append([])
                stack.append(stack[-1][-1].bodies[-1])
            else:
                stack.pop()
                if line.startswith("})") and stack and stack[-1] and "->" in line:
                    op = stack[-1][-1]
                    op.types = [types.type_of(t) for t in split(strip_parens(line[line.rindex("->") + 2:]))]
        elif line.endswith("{") and line.startswith(("default {", "partition")) and stack and stack[-1]:
            stack[-1][-1].bodies.append([])  # of ttg.warp_specialize
            stack.append(stack[-1][-1].bodies[-1])
        elif line.startswith("^bb"):
            if len(stack) > 1 and stack[-2]:
                stack[-2][-1].args = VALUE.findall(line)
        elif stack:
            op = operation(line, types)
            stack[-1].append(op)
            if line.endswith("{"):
                op.bodies.append([])
                stack.append(op.bodies[0])
    if function is None:
        raise ParseError("there is no public tt.func in this text: give TTGIR, as in kernel.asm['ttgir']")
    return function


def strip_parens(text):
    text = text.strip()
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def operation(line, types):
    found = OPERATION.match(line)
    if not found:
        raise ParseError(f"unknown line {line[:120]!r}")
    result, count, name, rest = found.groups()
    results = [] if result is None else result.split(", ") if count is None else [
        f"{result}#{i}" for i in range(int(count))]
    op = Op(name, results, (), rest, ())
    if name == "scf.for":
        head, _, tail = rest.partition("iter_args(")
        names = VALUE.findall(head)
        op.operands, op.args = names[1:4], [names[0]]
        if tail:
            end = tail.index(")")
            pairs = VALUE.findall(tail[:end])
            op.args += pairs[0::2]
            op.operands += pairs[1::2]
            tail = tail[end + 1:]
            kinds = re.search(r"->\s*\((.*)\)(?:\s*:\s*\w+)?\s*\{$", tail)[1]
            op.types = [types.type_of(t) for t in split(kinds)]
        return op
    op.operands = VALUE.findall(rest)
    if line.endswith("{"):
        if name == "scf.while":
            op.operands = op.operands[1::2]
            op.extra = VALUE.findall(rest)[0::2]
            op.args = op.extra
        if "->" in rest:
            kinds = re.search(r"->\s*\(?(.*?)\)?\s*\{$", rest)[1]
            op.types = [types.type_of(t) for t in split(kinds)]
        return op
    if not results:
        return op
    if name == "arith.constant":
        value, _, kind = rest.rpartition(" : ")
        if not value:  # true, false
            value, kind = rest, "i1"
        op.types = [types.type_of(kind)]
        value = value.strip()
        if value.startswith("dense<"):
            value = value[6:-1]
        value = {"true": "1", "false": "0"}.get(value, value)
        try:
            op.extra = int(value) if re.fullmatch(r"-?\d+", value) else float(value)
        except ValueError:
            op.extra = None
        return op
    at = rest.rfind("->")
    if at < 0:
        at = rest.rfind(" : ") + 1
        if at > 0:
            kind = rest[at + 2:]
            if " to " in kind:
                kind = kind[kind.rindex(" to ") + 4:]
            kinds = split(kind)
        else:
            kinds = ["i32"] * len(results)
    else:
        kinds = split(strip_parens(rest[at + 2:]))
    if len(kinds) < len(results):
        kinds = kinds[:1] * len(results)
    elif len(kinds) > len(results):
        first = name in ("ttng.warp_group_dot_wait", "tt.addptr", "tt.load")
        kinds = kinds[:len(results)] if first else kinds[-len(results):]
    if name == "tt.load" and "ptr<" in kinds[0]:
        kinds = [POINTER.sub(r"\1", kinds[0])]
    op.types = [types.type_of(k) for k in kinds]
    if name in ("arith.cmpi", "arith.cmpf"):
        op.types = [Type(op.types[0].shape, "i1", op.types[0].layout)]
    return op
