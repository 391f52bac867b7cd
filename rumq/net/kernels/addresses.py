"""Kernel: the address of a client's end as a number, where it is one of IPv4: 6 bytes, and 64 as text."""

import cython


def packed(peer: str) -> cython.longlong:
    """peer: as "192.0.2.1:1883" it becomes address << 16 | port; -1: it is anything else, or is written otherwise"""
    number: cython.longlong = 0
    part: cython.int = 0
    digits: cython.int = 0
    parts: cython.int = 0
    character: cython.Py_UCS4
    for character in peer:
        if "0" <= character <= "9":
            if (digits and not part) or part > 6553:
                return -1
            part = part * 10 + ord(character) - 48
            digits += 1
        elif (character == "." and parts < 3) or (character == ":" and parts == 3):
            if not digits or part > 255:
                return -1
            number = number << 8 | part
            parts += 1
            part = digits = 0
        else:
            return -1
    if parts != 4 or not digits or part > 65535:
        return -1
    return number << 16 | part


def unpacked(address: cython.uint, port: cython.int) -> str:
    """The text that `packed` was given."""
    return f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}:{port}"
