"""Registers and local memory of a kernel, from its cubin."""

from __future__ import annotations

import struct

REGISTERS, FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE of .nv.info


LOAD_LOCAL, STORE_LOCAL, BRANCH = 0x983, 0x387, 0x947  # the low 12 bits of an instruction, sm70 to sm90


def spills_in_loops(code: bytes) -> bool:
    """Whether an instruction between a branch and its target before it reads or writes the stack. An instruction has 16
    bytes; a branch has its way in fours of bytes, in bits 16 to 23 and 34 to 81, from the next one."""
    local, loops = [], []
    for i in range(0, len(code) - 15, 16):
        x = int.from_bytes(code[i:i + 16], "little")
        if x & 0xFFF in (LOAD_LOCAL, STORE_LOCAL):
            local.append(i)
        elif x & 0xFFF == BRANCH and x >> 81 & 1:
            far = (x >> 34 & (1 << 48) - 1) - (1 << 48) << 8 | x >> 16 & 0xFF
            if far < -4:  # a branch to itself ends the code
                loops.append((i + 16 + 4 * far, i))
    return any(begin <= i <= end for i in local for begin, end in loops)


def resources(cubin: bytes, kernel: str) -> tuple[int, int, bool]:
    """Registers of a thread, bytes of its stack, where spilled registers are, and whether loops use it."""
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
    return registers, frame, frame > 0 and spills_in_loops(cubin[text[4]:text[4] + text[5]])
