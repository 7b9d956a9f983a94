"""Registers and local memory of a kernel, from its cubin."""

from __future__ import annotations

import struct

REGISTERS, FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE of .nv.info


# the low 12 bits of an instruction, sm80 to sm120
LOAD, LOAD_LOCAL, STORE_LOCAL, BRANCH, EXIT = 0x981, 0x983, 0x387, 0x947, 0x94D
OTHER, READ = 30, 20  # cycles until other results are there, and until an instruction has read its operands


def loops(code):
    """Instructions of a kernel, and the first and last of each loop. An instruction has 16 bytes; a branch has its way in
    fours of bytes, in bits 16 to 23 and 34 to 81, from the next one."""
    instructions = [int.from_bytes(code[i:i + 16], "little") for i in range(0, len(code) - 15, 16)]
    found = []
    for i, x in enumerate(instructions):
        if x & 0xFFF == BRANCH and x >> 81 & 1:
            far = (x >> 34 & (1 << 48) - 1) - (1 << 48) << 8 | x >> 16 & 0xFF
            if far < -4:  # a branch to itself ends the code
                found.append((i + 1 + far // 4, i))
    return instructions, found


def cycles(body, memory, turns=1):
    """Cycles of the last of so many turns of a loop for a warp that is alone, where loads take so many. Instructions are
    issued in order; each waits for the barriers in bits 116 to 121, sets those in bits 110 and 113 when its result is there
    and its operands are read, and holds back the next one for the cycles in bits 105 to 108 (Jia et al., Dissecting the
    NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, section 2.1)."""
    now, before, free = 0, 0, [0] * 8
    steps = [([b for b in range(6) if x >> 116 + b & 1], x >> 110 & 7, memory if x & 0xFFF == LOAD else OTHER,
              x >> 113 & 7, max(1, x >> 105 & 15)) for x in body]
    for _ in range(turns):
        before = now
        for waits, result, late, read, held in steps:
            for b in waits:
                if free[b] > now:
                    now = free[b]
            if result < 6 and free[result] < now + late:
                free[result] = now + late
            if read < 6 and free[read] < now + READ:
                free[read] = now + READ
            now += held
    return now - before


def order(code, memory):
    """What the order of the instructions tells for each of the times that a load may take: of innermost loops with loads
    how many these are and the cycles of a turn, and, without such loops, the cycles of all instructions once. And whether a
    loop uses the stack."""
    instructions, found = loops(code)
    turns, looped = [], False
    for begin, end in found:
        body = instructions[begin:end + 1]
        names = [x & 0xFFF for x in body]
        looped |= LOAD_LOCAL in names or STORE_LOCAL in names
        if LOAD in names and not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in found):
            turns.append([names.count(LOAD), *(cycles(body, m, 3) for m in memory)])
    last = max((i for i, x in enumerate(instructions) if x & 0xFFF == EXIT), default=0)
    plain = not turns and any(x & 0xFFF == LOAD for x in instructions)
    return {"turns": turns, "once": [cycles(instructions[:last], m) for m in memory] if plain else []}, looped


def resources(cubin: bytes, kernel: str, memory=(400.0, 1000.0)) -> tuple[int, int, bool, dict]:
    """Registers of a thread, bytes of its stack, where spilled registers are, whether loops use it, and order()."""
    if cubin[:4] != b"\x7fELF" or cubin[4] != 2:
        raise ValueError("no cubin: an ELF file of 64 bits is expected")
    offset, = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * size) for i in range(count)]
    start = sections[names][4]
    named = {}
    for s in sections:
        end = cubin.index(b"\0", start + s[0])
        named[cubin[start + s[0]:end].decode()] = s
    text = named.get(".text." + kernel) or next((s for n, s in named.items() if n.startswith(".text.")), None)
    if text is None:
        raise ValueError(f"the cubin has no kernel {kernel}")
    registers, frame = text[7] >> 24, 0
    symbol = text[7] & 0xFFFFFF
    info = named.get(".nv.info")
    at, end = (info[4], info[4] + info[5]) if info else (0, 0)
    while at + 4 <= end:
        form, attribute, length = struct.unpack_from("<BBH", cubin, at)
        if form == 4:
            if attribute in (REGISTERS, FRAME) and length >= 8:
                of, value = struct.unpack_from("<II", cubin, at + 4)
                if attribute == FRAME and (of == symbol or frame == 0):
                    frame = value
                if attribute == REGISTERS and of == symbol:
                    registers = value
            at += length
        at += 4
    told, looped = order(cubin[text[4]:text[4] + text[5]], memory)
    return registers, frame, frame > 0 and looped, told
