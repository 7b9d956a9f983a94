"""What one program of a compiled kernel does: its loops run on paper.

    kernel, assumed = describe(ttgir.parse(text), arguments, grid, registers, spills, shared)

Scalars are computed from the arguments and a program's place in the grid; of tensors the strides along their dimensions
are. A loop's body is read once and counts as often as the loop runs. What depends on data is assumed, and noted.
"""

from __future__ import annotations

import math
from collections import defaultdict

from origami_gemm.pin import ttgir

MEMORY = 400.0, 1000.0  # cycles from an address to its data: the path of a program is found for both


class Value:
    """A value: number of a scalar or of a tensor's first element, strides per dimension (None: unknown), argument that a
    pointer comes from, share of a mask that is true, cycle in which it is there, and the operation that made it."""

    __slots__ = ("arg", "made", "number", "share", "strides", "time", "type")

    def __init__(self, type, number=None, strides=None, arg=None, share=None, time=0.0, made=""):
        self.type, self.number, self.strides, self.arg = type, number, strides, arg
        self.share, self.time, self.made = share, time, made


def divided(a, b):
    q = abs(a) // abs(b)
    return q if (a >= 0) == (b >= 0) else -q


INTEGER = {
    "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b,
    "divsi": lambda a, b: divided(a, b) if b else None, "divui": lambda a, b: a // b if b else None,
    "remsi": lambda a, b: a - b * divided(a, b) if b else None, "remui": lambda a, b: a % b if b else None,
    "ceildivsi": lambda a, b: -(-a // b) if b else None, "floordivsi": lambda a, b: a // b if b else None,
    "minsi": min, "minui": min, "maxsi": max, "maxui": max, "andi": lambda a, b: int(a) & int(b),
    "ori": lambda a, b: int(a) | int(b), "xori": lambda a, b: int(a) ^ int(b), "shli": lambda a, b: int(a) << int(b),
    "shrsi": lambda a, b: int(a) >> int(b), "shrui": lambda a, b: int(a) >> int(b),
    "addf": lambda a, b: a + b, "subf": lambda a, b: a - b, "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b if b else None, "maxnumf": max, "minnumf": min, "maximumf": max, "minimumf": min,
}
COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
           "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
# Instructions per element: of the ordinary units, and of the special-function unit. Source: the device's instructions for
# each of PTX's (cuobjdump -sass of one-line kernels).
COST = {"addf": (1, 0), "subf": (1, 0), "mulf": (1, 0), "maxnumf": (1, 0), "minnumf": (1, 0), "maximumf": (1, 0),
        "minimumf": (1, 0), "negf": (.5, 0), "absf": (.5, 0), "cmpf": (1, 0), "divf": (8, 1), "precise_divf": (14, 1),
        "exp2": (3, 1), "exp": (4, 1), "log2": (5, 1), "log": (6, 1), "sqrt": (5, 1), "precise_sqrt": (10, 1),
        "rsqrt": (3, 1), "sin": (12, 1), "cos": (12, 1), "tanh": (8, 2), "erf": (14, 1), "clampf": (2, 0), "fma": (1, 0),
        "sitofp": (0, 1), "uitofp": (0, 1), "fptosi": (0, 1), "fptoui": (0, 1), "truncf": (.5, 0), "extf": (1, 0),
        "fp_to_fp": (1, 0), "floor": (1, 0), "ceil": (1, 0), "mulhiui": (2, 0), "extern_elementwise": (12, 1)}
FREE = {"splat", "broadcast", "expand_dims", "reshape", "trans", "memdesc_index", "memdesc_trans", "memdesc_subview",
        "memdesc_reshape", "memdesc_subslice", "extsi", "extui", "trunci", "index_cast", "bitcast", "unsplat", "assume",
        "local_dealloc", "async_commit_group", "fence_async_shared", "constant", "get_program_id", "get_num_programs",
        "make_range", "split", "join", "cat", "return", "yield", "ptr_to_int", "int_to_ptr", "init_barrier", "inval_barrier"}


TRIPS, RANGE = 8, 512  # of a loop whose bounds are data: trips, and elements where its step is a block

ORDERED = {"async_wait", "warp_group_dot_wait", "barrier", "reduce", "convert_layout", "local_alloc", "local_store", "dot"}


class Counts(defaultdict):
    def __init__(self):
        super().__init__(float)


class Program:
    """Runs one program on paper."""

    def __init__(self, function, arguments, grid, place, trips=None, memory=MEMORY[0], copy=MEMORY[0], told=None):
        self.function, self.grid, self.place, self.trips = function, grid, place, trips
        self.turns = told["turns"] if told else ()
        self.memory, self.copy = memory, copy
        self.warps = function.warps
        self.counts, self.assumed, self.mult = Counts(), set(), 1.0
        self.loops = []  # how often each runs
        env = {}
        for name, known, kind in function.args:
            given = arguments.get(known)
            if isinstance(given, (list, tuple)):
                env[name] = Value(kind, 0, (), known)
            else:
                env[name] = Value(kind, given if isinstance(given, (int, float)) else None, ())
        self.counts["path"] = self.block(function.body, env, 0.0)

    # ------------------------------------------------------------------------------------------ blocks and loops

    def block(self, ops, env, start):
        """Runs operations; returns the cycle at which the last is done."""
        end = start
        outer, self.front = self.front, start  # where the program's order holds instructions back
        for op in ops:
            name = op.name.rsplit(".", 1)[1] if not op.name.startswith("tt.") else op.name[3:]
            if name == "for":
                end = self.loop(op, env, end)
            elif name == "if":
                end = self.branch(op, env, end)
            elif name == "while":
                end = self.loop(op, env, end, True)
            elif op.bodies and name not in ("reduce", "scan", "map_elementwise"):
                end = max([end, *(self.block(b, dict(env), end) for b in op.bodies)])
                for r, kind in zip(op.results, op.types):
                    env[r] = Value(kind, time=end)
            else:
                t = self.operation(op, name, env, start)
                if t > end:
                    end = t
                if name in ORDERED and t > self.front:
                    self.front = t
        self.front = outer
        return end

    def loop(self, op, env, start, free=False):
        trips, first = None, None
        if free:
            operands, args = op.operands, op.args
        else:
            low, high, step = (env[n].number for n in op.operands[:3])
            operands, args = op.operands[3:], op.args[1:]
            if None not in (low, high, step) and step:
                trips = max(0, -(-(high - low) // step))
                first = low + step * (trips // 2)
        if free and any(o.name == "tt.atomic_cas" for body in op.bodies for o in body):
            trips = 1
            self.assumed.add("a lock is free")
        if trips is None:
            step = 1 if free else env[op.operands[2]].number or 1
            trips = -(-(self.trips or (RANGE if step > 1 else TRIPS)) // max(1, step))
            self.assumed.add(f"a loop over data goes over {self.trips or RANGE} elements" if step > 1 else
                             f"a loop that depends on data runs {trips} times")
        inner = dict(env)
        for a, o in zip(args, operands):
            v = env[o]
            inner[a] = Value(v.type, v.number, v.strides, v.arg, v.share, start)
        if not free:
            inner[op.args[0]] = Value(env[op.operands[0]].type, first, (), time=start)
        if trips > 0:
            outer, self.mult = self.mult, self.mult * trips
            before = {k: self.counts[k] for k in ("commits", "async", "barriers", "loads")}
            body = self.block(op.bodies[0], inner, start) - start
            if len(op.bodies) > 1:
                body = self.block(op.bodies[1], inner, start + body) - start
            now = {k: (self.counts[k] - v) / self.mult for k, v in before.items()}
            turn = self.turn(now["loads"], trips)
            if turn and not now["async"]:
                body = max(turn, body) if now["barriers"] else turn
            elif not now["async"] and not now["barriers"] and not free and trips > 1:
                # unrolled by the compiler, so that loads of several trips fly at once
                times = trips if all(n.startswith("%c") for n in op.operands[:3]) else min(trips, 4)
                waits = body // self.memory * self.memory
                body = body - waits + waits / times
            if now["async"]:  # copies of later trips fly while this one computes
                ahead = self.pending / max(1.0, now["commits"]) if now["commits"] else 0
                # from the copy to the end of its trip, whole trips between, and from the start of a trip to its wait
                gap = max(0.0, start + body - self.copied) + ahead * body
                body += max(0.0, self.copy - gap) / (ahead + 1)
                self.counts["async_trips"] = max(self.counts["async_trips"], trips)
            self.mult = outer
            body *= trips
            self.loops.append(trips)
        else:
            body = 0.0
        last = op.bodies[0][-1].operands if op.bodies[0] else []
        for i, r in enumerate(op.results):
            o = inner.get(last[i]) if i < len(last) and trips > 0 else None
            v = o or (env[operands[i]] if i < len(operands) else None)
            kind = op.types[i] if i < len(op.types) else None
            env[r] = Value(kind, None if kind is None or not kind.shape else v.number if v else None,
                           v.strides if v else None, v.arg if v else None, None, start + body)
        return start + body

    def turn(self, loads, trips):
        """Cycles of a trip of an innermost loop with so many loads, as the compiler put its instructions in order, if one of
        the kernel's loops has a multiple of them: it may do several trips at once."""
        fitting = [t for t in self.turns if loads and t[0] >= loads]
        if not fitting:
            return None
        n, near, far = max((t for t in fitting if t[0] <= loads * max(1, trips)), default=min(fitting))
        return (near if self.memory == MEMORY[0] else far) * loads / n

    def branch(self, op, env, start):
        condition = env[op.operands[0]].number if op.operands else None
        ends, outer = [start], self.mult
        for i, body in enumerate(op.bodies):
            if condition is not None and bool(condition) != (i == 0):
                continue
            if condition is None and len(op.bodies) > 1:
                self.mult = outer / 2
            inner = dict(env)
            ends.append(self.block(body, inner, start))
            self.mult = outer
            if body and body[-1].name == "scf.yield":
                for r, o, kind in zip(op.results, body[-1].operands, op.types):
                    v = inner[o]
                    number = v.number if condition is not None else None
                    env[r] = Value(kind, number, v.strides, v.arg, v.share, ends[-1])
        if condition is None and op.bodies:
            self.assumed.add("a branch that depends on data is taken" if len(op.bodies) == 1 else
                             "of a branch that depends on data each side is taken as often")
        for r, kind in zip(op.results, op.types):
            if r not in env:
                env[r] = Value(kind, None, None, None, None, max(ends))
        return max(ends)

    # ------------------------------------------------------------------------------------------ operations

    def add(self, key, n):
        self.counts[key] += n * self.mult

    def instructions(self, n, kind="alu"):
        """n instructions of each warp."""
        c = self.counts
        c[kind] += n * self.warps * self.mult

    def operation(self, op, name, env, start):
        operands = [env[o] for o in op.operands if o in env]
        time = start
        for v in operands:
            if v.time > time:
                time = v.time
        kind = op.types[0] if op.types else None
        method = getattr(self, "on_" + name, None)
        if method is not None:
            out, time = method(op, operands, kind, time)
        elif name in FREE or (kind is not None and not kind.shape):
            out, time = self.plain(op, name, operands, kind, time)
        else:
            out, time = self.elementwise(op, name, operands, kind, time)
        if op.results:
            if out is None:
                out = Value(kind)
            out.time, out.made = time, name
            env[op.results[0]] = out
            for r, t in zip(op.results[1:], op.types[1:] or [kind] * len(op.results)):
                env[r] = Value(t, None, None, None, None, time, name)
        return time

    def plain(self, op, name, v, kind, time):
        if name == "constant":
            return Value(kind, op.extra, (0,) * len(kind.shape)), time
        if name == "get_program_id":
            return Value(kind, self.place["xyz".index(op.text.strip()[0])], ()), time
        if name == "get_num_programs":
            return Value(kind, self.grid["xyz".index(op.text.strip()[0])], ()), time
        if name == "make_range":
            begin = int(op.text.split("start = ")[1].split()[0])
            return Value(kind, begin, (1,)), time
        if not v:
            return Value(kind), time
        a = v[0]
        if name in ("splat",):
            return Value(kind, a.number, (0,) * len(kind.shape), a.arg, a.share), time
        if name == "expand_dims":
            axis = int(op.text.split("axis = ")[1].split()[0])
            strides = None if a.strides is None else (*a.strides[:axis], 0, *a.strides[axis:])
            return Value(kind, a.number, strides, a.arg, a.share), time
        if name == "broadcast":
            return Value(kind, a.number, a.strides, a.arg, a.share), time
        if name == "trans" and a.strides and "order = " in op.text:
            order = ttgir.numbers(op.text.replace("array<i32: ", "[").replace(">", "]"), "order")
            strides = tuple(a.strides[i] for i in order) if len(order) == len(a.strides) else None
            return Value(kind, a.number, strides, a.arg, a.share), time
        if name in ("extsi", "extui", "trunci", "index_cast", "bitcast", "unsplat", "ptr_to_int", "int_to_ptr"):
            return Value(kind, a.number, a.strides if kind is not None else (), a.arg, a.share), time
        if kind is not None and not kind.shape and name not in FREE:
            self.instructions(1)
            return self.scalar(op, name, v, kind), time + 5
        return Value(kind, None, None, a.arg), time

    def scalar(self, op, name, v, kind):
        x = [a.number for a in v]
        if name == "addptr":
            return Value(kind, None if None in x else x[0] + x[1], (), v[0].arg)
        if name == "select":
            if x[0] is None:
                return Value(kind, x[1] if x[1] == x[2] else None, (), v[1].arg)
            return Value(kind, x[1] if x[0] else x[2], (), v[1].arg)
        if name == "andi" and kind.bits == 1 and 0 in x:
            return Value(kind, 0, ())
        if name == "ori" and kind.bits == 1 and 1 in x:
            return Value(kind, 1, ())
        if None in x:
            return Value(kind, None, ())
        try:
            if name in ("cmpi", "cmpf"):
                way = op.text.strip().split(",")[0].split()[0]
                return Value(kind, int(COMPARE[way.lstrip("uso") or way](*x)) if way.lstrip("uso") in COMPARE else None, ())
            if name in INTEGER:
                return Value(kind, INTEGER[name](*x), ())
            if name in ("sitofp", "extf", "truncf", "fptosi"):
                return Value(kind, int(x[0]) if name == "fptosi" else x[0], ())
            if name in ("exp2", "sqrt", "log2", "ceil", "floor"):
                return Value(kind, getattr(math, name)(x[0]), ())
        except (ValueError, OverflowError, TypeError, ZeroDivisionError):
            pass
        return Value(kind, None, ())

    def elementwise(self, op, name, v, kind, time):
        """Also of integers and masks, of which strides and shares are followed."""
        if kind is None:
            return None, time
        regs = kind.regs
        out = Value(kind)
        if name == "addptr":
            out = self.affine("addi", v, kind)
            out.arg = v[0].arg
            self.instructions(self.vectors(out, kind) * 1.5, "int")
            return out, time + 5
        if kind.element[0] == "i" or name == "cmpi":
            if name == "cmpi":
                out.share = self.compared(op, v, kind)
                cost = .5
            elif kind.bits == 1:
                shares = [a.share if a.share is not None else float(bool(a.number)) if a.number is not None and
                          a.strides is not None and not any(a.strides) else 1.0 for a in v]
                if name == "andi":
                    out.share = math.prod(shares)
                elif name == "ori":
                    out.share = min(1.0, sum(shares))
                cost = .25
            else:
                out = self.affine(name, v, kind)
                cost = .5 if name not in ("divsi", "remsi", "divui", "remui") else 6
            self.instructions(regs * cost * (2 if kind.bits == 64 else 1), "int")
            return out, time + 5
        if name == "select":
            self.instructions(regs, "alu")
            return out, time + 5
        cost, special = COST.get(name, (1, 0))
        if name in ("addf", "subf") and any(a.made == "mulf" for a in v):
            cost = 0  # a fused multiply-add
            for a in v:
                if a.made == "mulf":
                    a.made = "fma"
                    break
        if name == "elementwise_inline_asm":
            pack = op.text.split("packed_element = ")
            cost = op.text.count(";") / (int(pack[1].split()[0]) if len(pack) > 1 else 1)
        if kind.bits == 8 or any(a.type is not None and a.type.bits == 8 and a.type.element[0] == "f" for a in v):
            cost = max(cost, 1)
        self.instructions(regs * cost, "alu")
        if special:
            self.instructions(regs * special, "special")
        return out, time + (24 if special else 5)

    def affine(self, name, v, kind):
        a, b = v[0], v[1] if len(v) > 1 else v[0]
        out = Value(kind)
        if a.strides is None or b.strides is None or len(a.strides) != len(b.strides):
            return out
        flat_a, flat_b = not any(a.strides), not any(b.strides)
        known = a.number is not None and b.number is not None
        if name in ("addi", "subi"):
            sign = 1 if name == "addi" else -1
            out.strides = tuple(x + sign * y for x, y in zip(a.strides, b.strides))
            out.number = a.number + sign * b.number if known else None
        elif name == "muli":
            if flat_b and b.number is not None:
                out.strides = tuple(x * b.number for x in a.strides)
            elif flat_a and a.number is not None:
                out.strides = tuple(x * a.number for x in b.strides)
            elif flat_a and flat_b:
                out.strides = a.strides
            out.number = a.number * b.number if known else None
        elif flat_a and flat_b:
            out.strides = a.strides
            try:
                out.number = INTEGER[name](a.number, b.number) if known and name in INTEGER else None
            except (ValueError, TypeError):
                out.number = None
        elif name in ("divsi", "divui") and flat_b and b.number:
            out.strides = tuple(x / b.number for x in a.strides)
            out.number = a.number // b.number if known else None
        elif name in ("remsi", "remui"):
            out.strides = a.strides
            if flat_b and b.number and a.number is not None:
                out.number = a.number % b.number
                out.strides = tuple(0 if x and abs(x) % b.number == 0 else x for x in a.strides)
        elif name in ("shrsi", "shrui") and flat_b and b.number is not None:
            out.strides = tuple(x / 2 ** b.number for x in a.strides)
            out.number = int(a.number) >> int(b.number) if known else None
        elif name == "shli" and flat_b and b.number is not None:
            out.strides = tuple(x * 2 ** b.number for x in a.strides)
            out.number = int(a.number) << int(b.number) if known else None
        elif name in ("minsi", "maxsi", "andi", "ori", "xori"):
            out.strides = a.strides if flat_b else b.strides if flat_a else None
        return out

    def compared(self, op, v, kind):
        """Share of a comparison that is true, over the elements of its tensor."""
        a, b = v
        if a.strides is None or b.strides is None or a.number is None or b.number is None:
            return 1.0
        way = op.text.strip().split(",")[0].split()[0].lstrip("us")
        if way not in COMPARE:
            return 1.0
        strides = [x - y for x, y in zip(a.strides, b.strides)]
        base, shape = a.number - b.number, kind.shape
        free = [(s, n) for s, n in zip(strides, shape) if s and n > 1]
        compare = COMPARE[way]
        if not free:
            return float(compare(base, 0))
        if len(free) == 1:
            s, n = free[0]
            if way in ("lt", "le", "gt", "ge"):
                first, last = compare(base, 0), compare(base + s * (n - 1), 0)
                if first and last:
                    return 1.0
                if not first and not last:
                    return 0.0
                return min(1.0, max(1 / n, abs(base) / abs(s) / n if first else 1 - abs(base) / abs(s) / n))
            return min(1.0, 1 / n) if way == "eq" else 1 - 1 / n
        hits = total = 0
        (s, n), (t, m) = free[0], free[1]
        for i in range(8):
            for j in range(8):
                hits += compare(base + s * ((2 * i + 1) * n // 16) + t * ((2 * j + 1) * m // 16), 0)
                total += 1
        return hits / total

    # ------------------------------------------------------------------------------------------ memory

    def vectors(self, pointer, kind):
        return max(1.0, kind.regs / self.vector(pointer, kind)[0])

    def vector(self, pointer, kind):
        """Elements of one access of a thread, and the dimension along which they lie."""
        size = TYPES.get(kind.element[4:], 4) if kind.element.startswith("ptr") else max(1, kind.bits // 8)
        if pointer.strides is None or not kind.layout:
            return 1, None
        dims = list(kind.layout.dims(kind.shape))
        for d, s in enumerate(pointer.strides):
            if s == 1 and d < len(dims):
                return max(1, min(dims[d][0], 16 // size)), d
        return 1, None

    def access(self, op, pointer, mask, time):
        """Counts an access to global memory; returns its elements' size and vector."""
        kind = pointer.type
        size = TYPES.get(kind.element[4:], 4) if kind.element.startswith("ptr") else 4
        share = 1.0 if mask is None else mask.share if mask.share is not None else 1.0
        if mask is not None and not mask.type.shape and mask.number is not None:
            share = float(bool(mask.number))
        if not kind.shape:
            return size, 1, share, 1, 32.0, float(size)
        n, along = self.vector(pointer, kind)
        if "contiguity = " in op.text:
            n = max(n, min(int(op.text.split("contiguity = ")[1].split()[0]), 16 // size)) if along is None else n
        count = max(1.0, kind.regs / n)
        # sectors of 32 bytes that one instruction of a warp touches, and bytes that the program touches once
        if pointer.strides is None:
            return size, n, share, count, 32.0 * max(1, 32 * n * size / 128), kind.size * max(size, 32 if n * size < 32 else size)
        run, rows, unique = n * size if along is not None else size, 1, float(size)
        dims = list(kind.layout.dims(kind.shape))
        for d, (s, (_, lanes, _, _), extent) in enumerate(zip(pointer.strides, dims, kind.shape)):
            if s:
                unique *= extent
                if d == along:
                    run *= lanes
                elif s != s or abs(s) * size >= 32:
                    rows *= lanes
                else:
                    run = max(run, lanes * abs(s) * size)
        least = min((32 / size if s != s else abs(s) for s, e in zip(pointer.strides, kind.shape) if s and e > 1), default=0)
        if least * size > 32:
            unique *= 32 / size
        elif least > 1:
            unique *= least
        sectors = rows * max(1.0, math.ceil(run / 32))
        return size, n, share, count, 32.0 * sectors, unique

    def touch(self, way, op, pointer, mask, time):
        size, n, share, count, moved, unique = self.access(op, pointer, mask, time)
        c, warps = self.counts, self.warps if pointer.type.shape else 1
        lanes = 32 * n * size
        self.add("lsu", count * warps * max(1.0, lanes / 128, moved / 32 / 16 if moved > lanes else 0) * max(share, .05))
        self.add("sectors", count * warps * moved / 32 * share)
        self.add(way, unique * share)
        if way == "load":
            self.add("loads", count)
        c[("arg", way, pointer.arg)] += unique * share * self.mult
        along = [e * size for s, e in zip(pointer.strides or (), pointer.type.shape) if s == 1]
        if pointer.type.shape and unique > 512:
            short = max(0.0, 128 / min(128.0, max(32.0, along[0] if along else size)) - 1)
            c[("short", way, pointer.arg)] += short * unique * share * self.mult
        self.instructions(count * warps / self.warps, "memory")
        return size, n, count, unique * share

    def on_load(self, op, v, kind, time):
        mask = v[1] if len(v) > 1 and v[1].type is not None and v[1].type.bits == 1 else None
        self.touch("load", op, v[0], mask, time)
        if mask is not None and mask.type.shape and mask.share == 0:
            return Value(kind), time
        return Value(kind, None, tuple(math.nan if n > 1 else 0 for n in kind.shape)), time + self.memory

    def on_store(self, op, v, kind, time):
        self.touch("store", op, v[0], v[2] if len(v) > 2 else None, time)
        return None, time

    def on_atomic_rmw(self, op, v, kind, time):
        self.touch("atomic", op, v[0], v[2] if len(v) > 2 else None, time)
        return Value(kind), time + (self.memory if op.results else 0)

    on_atomic_cas = on_atomic_rmw

    def on_async_copy_global_to_local(self, op, v, kind, time):
        masks = [x for x in v[2:] if x.type is not None and x.type.bits == 1]
        pointer = v[0]
        size, n, count, moved = self.touch("load", op, pointer, masks[0] if masks else None, time)
        self.add("shared", pointer.type.size * size)
        self.add("async", 1)
        self.copied = max(time, self.front)
        return Value(kind), time

    def on_async_commit_group(self, op, v, kind, time):
        self.add("commits", 1)
        return Value(kind), time

    pending, front, copied = 0, 0.0, 0.0

    def on_async_wait(self, op, v, kind, time):
        if "num = " in op.text:
            self.pending = int(op.text.split("num = ")[1].split()[0])
        self.add("barriers", 1)
        return Value(kind), time + 30

    def on_tc_gen5_mma(self, op, v, kind, time):
        tiles = [x.type for x in v if x.type is not None and len(x.type.shape) >= 2]
        if len(tiles) >= 2:
            a, b = tiles[:2]
            own = a.shape[-2] * a.shape[-1] * b.shape[-1] / 4096 / rate(a.element)
            self.add("wgmma", 2 * own)
            time += own + 30
        return None, time

    on_tc_gen5_mma_scaled = on_tc_gen5_mma

    def tma(self, op, shape, bits, arg):
        moved = math.prod(shape) * bits / 8
        self.add("load", moved)
        self.counts[("arg", "load", arg)] += moved * self.mult
        self.add("shared", moved)
        self.instructions(2 / self.warps, "memory")
        self.copied = self.front
        self.add("sectors", moved / 32)

    def on_descriptor_load(self, op, v, kind, time):
        self.tma(op, kind.shape, kind.bits, v[0].arg)
        return Value(kind), time + self.memory

    def on_async_tma_copy_global_to_local(self, op, v, kind, time):
        target = next((x.type for x in v if x.type is not None and x.type.shape and x.type.bits > 1), None)
        if target is not None:
            self.tma(op, target.shape, target.bits, v[0].arg)
        self.add("async", 1)
        self.add("commits", 1)
        return None, time

    def on_wait_barrier(self, op, v, kind, time):
        self.add("barriers", 1)
        return None, time + 30

    # ------------------------------------------------------------------------------------------ shared memory

    def through_shared(self, kind, ways=1.0):
        """Bytes of a tensor's registers through shared memory, once."""
        n = kind.regs * 32 * self.warps * kind.bits / 8
        self.add("shared", n * ways)
        wide = 4.0 if kind.bits < 32 else 2.0
        self.instructions(max(1.0, kind.regs * kind.bits / 32 / wide), "memory")
        return n

    def on_local_load(self, op, v, kind, time):
        self.through_shared(kind)
        return Value(kind), time + 33

    def on_local_store(self, op, v, kind, time):
        self.through_shared(v[0].type)
        self.add("barriers", 1)
        return None, time + 30

    def on_local_alloc(self, op, v, kind, time):
        if v and v[0].type is not None and v[0].type.shape:
            self.through_shared(v[0].type)
            self.add("barriers", 1)
            time += 40
        return Value(kind), time

    def on_convert_layout(self, op, v, kind, time):
        a, b = v[0].type.layout, kind.layout
        out = Value(kind, v[0].number, v[0].strides, v[0].arg, v[0].share)
        if a is b or v[0].type.regs == kind.regs == 1 and self.warps == 1:
            return out, time
        if isinstance(a, ttgir.Mma) and isinstance(b, ttgir.Operand) and isinstance(b.parent, ttgir.Mma) and \
                b.index == 0 and a.version == b.parent.version and a.warps == b.parent.warps:
            return out, time
        if list(a.dims(kind.shape)) == list(b.dims(kind.shape)):
            return out, time
        self.through_shared(v[0].type)
        self.through_shared(kind)
        if self.warps > 1:
            self.add("barriers", 2)
        return out, time + 70

    def on_barrier(self, op, v, kind, time):
        self.add("barriers", 1)
        return None, time + 20

    def on_reduce(self, op, v, kind, time):
        source, scan = v[0].type, op.name.endswith("scan")
        axis = int(op.text.split("axis = ")[1].split()[0])
        dims = list(source.layout.dims(source.shape))
        s, lanes, warps, reps = dims[axis]
        regs, along = source.regs, s * reps
        rest = max(1, regs // along)
        n = len(v)
        body = max(1, len(op.bodies[0]) - 1) if op.bodies else 1
        self.instructions(regs * body * (2 if scan else 1), "alu")
        steps = math.log2(lanes) if lanes > 1 else 0
        shuffled = rest * (reps if scan else 1) * steps * n
        self.instructions(shuffled * (1 + body), "alu")
        time += 5 * body * min(along, 2 * math.log2(max(2, along)) + along / 4) + (26 + 5 * body) * steps
        if warps > 1:
            # a warp's lanes write and read one value each, the warps' values of a result lie side by side
            apart = next((s for i, (s, lanes, _, _) in enumerate(dims) if i != axis and lanes > 1), 1) * warps
            lanes = math.prod(lanes for i, (_, lanes, _, _) in enumerate(dims) if i != axis)
            conflicts = max(1, min(lanes, lanes * min(32, apart) / 32))
            self.add("barriers", 2)
            self.add("shared", rest * n * 128 * self.warps * 2 * conflicts)
            self.instructions(2 * rest * n, "memory")
            time += 80 + (math.log2(warps) * 31 if not scan else warps * 10)
        return Value(kind), time

    on_scan = on_reduce

    # ------------------------------------------------------------------------------------------ dots

    def dot(self, op, a, b, kind, time):
        m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
        batch = a.shape[0] if len(a.shape) > 2 else 1
        element = a.element
        fma = float(m) * n * k * batch
        if element == "f32":
            precision = op.text.split("inputPrecision = ")[1].split()[0].strip(",") if "inputPrecision = " in op.text else ""
            element = "tf32" if precision in ("tf32", "0") else "tf32x3" if precision in ("tf32x3", "1") else "f32"
        layout = kind.layout
        if not isinstance(layout, ttgir.Mma):
            self.instructions(fma / 32 / self.warps, "alu")
            return time + 5 * k
        if layout.version == 2:
            instructions = max(1.0, fma / (16 * 8 * 16 * {"tf32": .5, "tf32x3": .17, "i8": 2}.get(element, 2 if
                               element.startswith("f8") else 1)))
            self.add("mma", fma * (3 if element == "tf32x3" else 1) / rate(element))
            self.instructions(instructions / self.warps, "alu")
            steps = k / (16 * rate(element))
            own = fma / rate(element) / self.warps / 512 / .62
            return time + max(own + 20, 18 * steps + 16)
        width = min(n, layout.instruction[1])
        steps = fma / (64 * width * 16 * rate(element))
        from_registers = isinstance(a.layout, ttgir.Operand)
        each = max(width / 2, (0 if from_registers else 16) + width / 4)
        self.add("wgmma", steps * each)
        self.instructions(steps / self.warps * 4, "alu")
        own = steps * each
        return time + own + 30

    def on_dot(self, op, v, kind, time):
        return Value(kind), self.dot(op, v[0].type, v[1].type, kind, time)

    def on_warp_group_dot(self, op, v, kind, time):
        end = self.dot(op, v[0].type, v[1].type, kind, time)
        self.dot_time = end - time
        return Value(kind), end if "isAsync = true" not in op.text else time

    dot_time = 0.0

    def on_warp_group_dot_wait(self, op, v, kind, time):
        pendings = int(op.text.split("pendings = ")[1].split()[0]) if "pendings = " in op.text else 0
        self.add("barriers", .3)
        return Value(kind), time + (self.dot_time if pendings == 0 else 0)


TYPES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "i1": 1, "f8E4M3FN": 1, "f8E5M2": 1}


def rate(element):
    """Products per cycle ÷ products of 16-bit types."""
    return 2.0 if element == "i8" or element.startswith("f8") else .5 if element.startswith("tf32") else 1.0


def places(grid, n=3):
    """Programs spread over the grid."""
    out = []
    for i in range(n):
        shares = (i + .5) / n, (i * .618 + .5) % 1, (i * .414 + .5) % 1
        out.append(tuple(min(g - 1, int(x * g)) for g, x in zip(grid, shares)))
    return out


SIZES = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "bfloat16": 2,
         "int16": 2, "uint16": 2}


def describe(function, arguments, grid, registers, spills, shared, trips=None, told=None):
    """A launch in the numbers of the model's question "pin" and what was assumed for them.

    arguments are numbers by name, and (dtype, shape, ...) for tensors. trips is how often a loop runs whose bounds are data,
    or over how many elements it goes, where its step is a block. told is cubin.order()."""
    grid = tuple(int(g) for g in (*grid, 1, 1)[:3])
    programs = math.prod(grid)
    spots = places(grid)[:max(1, min(programs, 3))]
    runs = [Program(function, arguments, grid, p, trips, told=told) for p in spots]
    c = Counts()
    for r in runs:
        for k, x in r.counts.items():
            c[k] += x / len(runs)
    middle = len(spots) // 2
    longer = []
    for way in "memory", "copy":
        far = Program(function, arguments, grid, spots[middle], trips, told=told, **{way: MEMORY[1]})
        longer.append(max(0.0, c["path"] * (far.counts["path"] / max(1.0, runs[middle].counts["path"]) - 1)))
    if told and told["once"] and not runs[middle].loops and not c["async"]:  # all instructions once
        c["path"], longer[0] = told["once"][0], told["once"][1] - told["once"][0]
    dram = short = begun = 0.0
    for key, moved in c.items():
        if not isinstance(key, tuple) or key[0] != "arg":
            continue
        total, given = moved * programs, arguments.get(key[2])
        if isinstance(given, (list, tuple)):
            total = min(total, math.prod(given[1]) * SIZES.get(str(given[0]).rsplit(".", 1)[-1], 1))
        part = c.get(("short", *key[1:]), 0.0)
        dram, short, begun = dram + total, short + total * part / max(1.0, moved), begun + part
    kernel = {
        "programs": programs, "warps": function.warps, "registers": max(16, registers), "spills": spills,
        "shared_bytes": shared, "instructions": c["alu"] + c["int"] + c["special"] + c["memory"], "special": c["special"],
        "wavefronts": c["lsu"], "shared_traffic": c["shared"], "products": c["wgmma"] * 2048, "sync_products": c["mma"],
        "sector_bytes": c["sectors"] * 32, "dram_bytes": dram, "short_bytes": short, "path": c["path"],
        "path_loads": longer[0], "path_copies": longer[1], "barrier_steps": c["barriers"] * math.log2(max(2, function.warps)),
        "trips": max(runs[0].loops, default=1), "copied_trips": c["async_trips"],
    }
    kernel = {k: float(f"{v:.12g}") for k, v in kernel.items()}
    return kernel, sorted(set().union(*(r.assumed for r in runs)))
