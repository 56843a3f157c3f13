"""QR codes for guest passes and links, as SVG, PNG or text."""

import io
import itertools
from typing import Any

import pyqrcode

_QUIET_ZONE = 4
# Each character shows two modules, one above the other. "0" is a light module. Light modules are
# drawn, because most consoles show light text on a dark background.
_BLOCKS = {"00": "█", "01": "▀", "10": "▄", "11": " "}


def qr_svg(text: str) -> str:
    """Return a QR code of `text` as an SVG element, black on white, one user unit per module.

    Takes up to 100 ms, so call it in a thread and cache the result. Raises ValueError if `text`
    contains characters outside the QR alphanumeric set.
    """
    return _svg(_pass_code(text))


def qr_png(text: str, scale: int) -> bytes:
    """Return a QR code of `text` as a two-colour PNG for emails, with `scale` pixels per module.

    Raises ValueError if `text` contains characters outside the QR alphanumeric set.
    """
    file = io.BytesIO()
    _pass_code(text).png(file, scale=scale, quiet_zone=_QUIET_ZONE)
    return file.getvalue()


def qr_blocks(text: str) -> str:
    """Return a QR code of `text` in half-block characters for a console.

    Raises ValueError if `text` contains characters outside the QR alphanumeric set.
    """
    return _blocks(_pass_code(text))


def link_svg(url: str) -> str:
    """Return a QR code of `url` as an SVG element in the format of `qr_svg`."""
    return _svg(_link_code(url))


def link_blocks(url: str) -> str:
    """Return a QR code of `url` in half-block characters for a console."""
    return _blocks(_link_code(url))


def _pass_code(text: str) -> Any:
    return pyqrcode.create(text, error="M", mode="alphanumeric")


def _link_code(url: str) -> Any:
    return pyqrcode.create(url, error="L", mode="binary", encoding="ascii")


def _svg(code: Any) -> str:
    file = io.BytesIO()
    code.svg(
        file, background="#fff", quiet_zone=_QUIET_ZONE, xmldecl=False, omithw=True,
        svgclass=None, lineclass=None,
    )  # fmt: skip
    svg = file.getvalue().decode().strip()
    return svg.replace("<svg", '<svg shape-rendering="crispEdges" aria-hidden="true"', 1)


def _blocks(code: Any) -> str:
    rows = code.text(_QUIET_ZONE).splitlines()
    pairs = itertools.zip_longest(rows[::2], rows[1::2], fillvalue="1" * len(rows[0]))
    return "\n".join("".join(_BLOCKS[a + b] for a, b in zip(*pair, strict=True)) for pair in pairs)
