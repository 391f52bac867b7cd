"""CRC-32 of the log: that of zlib, by ISA-L where it is installed, which takes a ninth of the time.

docs/decisions/0077-checksums-by-isa-l.md. Lone messages are summed by `commitlog.kernels.small_chunk`."""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32 as crc32
except ImportError:  # no wheel of it is made for this platform
    from zlib import crc32 as crc32
