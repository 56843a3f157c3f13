"""QR codes for guest passes and links, as SVG or PNG."""

import io
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyqrcode

_QUIET_ZONE = 4


def qr_svg(text: str, error: str = "M") -> str:
    """Return a QR code of `text` as an SVG element, black on white, one user unit per module.

    `error` is the level of error correction; "L" makes the smallest code. Takes up to 100 ms, so
    call it in a thread and cache the result.
    """
    file = io.BytesIO()
    _create(text, error).svg(
        file, background="#fff", quiet_zone=_QUIET_ZONE, xmldecl=False, omithw=True,
        svgclass=None, lineclass=None,
    )  # fmt: skip
    svg = file.getvalue().decode().strip()
    return svg.replace("<svg", '<svg shape-rendering="crispEdges" aria-hidden="true"', 1)


def qr_png(text: str, scale: int) -> bytes:
    """Return a QR code of `text` as a two-colour PNG for emails, with `scale` pixels per module."""
    rows = _create(text, "M").text(_QUIET_ZONE).splitlines()
    size, lines = scale * len(rows), b""
    for row in rows:
        dots = "".join(("0" if module == "1" else "1") * scale for module in row)
        packed = int(dots.ljust(-(-size // 8) * 8, "0"), 2).to_bytes(-(-size // 8), "big")
        lines += (b"\0" + packed) * scale  # one bit a pixel, 1 is white; no filter
    header = struct.pack(">IIBBBBB", size, size, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def _create(text: str, error: str) -> "pyqrcode.QRCode":
    import pyqrcode  # noqa: PLC0415 - its tables are slow to import, and a start needs no code

    return pyqrcode.create(text, error=error)
