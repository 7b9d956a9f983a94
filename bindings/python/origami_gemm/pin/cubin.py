"""Registers and local memory of a kernel, from its cubin."""

from __future__ import annotations

import struct

REGISTERS, FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE of .nv.info


def resources(cubin: bytes, kernel: str) -> tuple[int, int]:
    """Registers of a thread, and bytes of its stack, where spilled registers are."""
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
    return registers, frame
