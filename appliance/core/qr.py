"""QR codes for guest passes and links, as SVG, PNG or text."""

import io
import itertools

import pyqrcode

_QUIET_ZONE = 4
# Each character shows two modules, one above the other. "0" is a light module. Light modules are
# drawn, because most consoles show light text on a dark background.
_BLOCKS = {"00": "█", "01": "▀", "10": "▄", "11": " "}


def qr_svg(text: str, error: str = "M") -> str:
    """Return a QR code of `text` as an SVG element, black on white, one user unit per module.

    `error` is the level of error correction; "L" makes the smallest code. Takes up to 100 ms, so
    call it in a thread and cache the result.
    """
    file = io.BytesIO()
    pyqrcode.create(text, error=error).svg(
        file, background="#fff", quiet_zone=_QUIET_ZONE, xmldecl=False, omithw=True,
        svgclass=None, lineclass=None,
    )  # fmt: skip
    svg = file.getvalue().decode().strip()
    return svg.replace("<svg", '<svg shape-rendering="crispEdges" aria-hidden="true"', 1)


def qr_png(text: str, scale: int) -> bytes:
    """Return a QR code of `text` as a two-colour PNG for emails, with `scale` pixels per module."""
    file = io.BytesIO()
    pyqrcode.create(text, error="M").png(file, scale=scale, quiet_zone=_QUIET_ZONE)
    return file.getvalue()


def qr_blocks(text: str, error: str = "M") -> str:
    """Return a QR code of `text` in half-block characters for a console."""
    rows = pyqrcode.create(text, error=error).text(_QUIET_ZONE).splitlines()
    pairs = itertools.zip_longest(rows[::2], rows[1::2], fillvalue="1" * len(rows[0]))
    return "\n".join("".join(_BLOCKS[a + b] for a, b in zip(*pair, strict=True)) for pair in pairs)
