"""QR codes of guest passes and links, as SVG, PNG and text."""

import io
import itertools

import pyqrcode

QUIET_ZONE = 4
_PASS = {"error": "M", "mode": "alphanumeric"}
_LINK = {"error": "L", "mode": "binary", "encoding": "ascii"}
# Most consoles show light text on dark, so the light modules are drawn.
_BLOCKS = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}


def qr_svg(text: str) -> str:
    """Return `text` as an SVG element, black on white with quiet zone, one user unit a module.

    ValueError if `text` is not in QR's alphanumeric set. Takes about 20 ms of pure Python:
    call it in a thread and cache the result.
    """
    return _svg(_modules(text))


def _svg(rows: list[list[int]]) -> str:
    side = len(rows) + 2 * QUIET_ZONE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}"'
        ' shape-rendering="crispEdges" aria-hidden="true">'
        f'<path fill="#fff" d="M0 0h{side}v{side}H0z"/>'
        f'<path fill="#000" d="{_path(rows)}"/></svg>'
    )


def link_svg(url: str) -> str:
    """Return a URL as an SVG element, as `qr_svg`; to be read by a phone's camera."""
    return _svg(_modules(url, is_link=True))


def link_blocks(url: str) -> str:
    """Return a URL as text for a console, as `qr_blocks`."""
    return _blocks(_modules(url, is_link=True))


def qr_png(text: str, scale: int) -> bytes:
    """Return `text` as a two-colour PNG, `scale` pixels a module; for emails."""
    file = io.BytesIO()
    pyqrcode.create(text, **_PASS).png(file, scale=scale, quiet_zone=QUIET_ZONE)
    return file.getvalue()


def qr_blocks(text: str) -> str:
    """Return `text` as half-block characters for a console, light on dark."""
    return _blocks(_modules(text))


def _blocks(rows: list[list[int]]) -> str:
    side = len(rows) + 2 * QUIET_ZONE
    aside, blank = [0] * QUIET_ZONE, [[0] * side] * QUIET_ZONE
    padded = [*blank, *([*aside, *row, *aside] for row in rows), *blank]
    pairs = itertools.zip_longest(padded[::2], padded[1::2], fillvalue=[1] * side)
    return "\n".join(
        "".join(_BLOCKS[upper, lower] for upper, lower in zip(*pair, strict=True)) for pair in pairs
    )


def _modules(text: str, *, is_link: bool = False) -> list[list[int]]:
    kind = _LINK if is_link else _PASS
    modules: list[list[int]] = pyqrcode.create(text, **kind).code
    return modules


def _path(rows: list[list[int]]) -> str:
    """Return an SVG path: each horizontal run of dark modules is one rectangle."""
    parts, last_x, last_y = [], 0, 0
    for y, row in enumerate(rows, QUIET_ZONE):
        for x, length in _runs(row):
            parts.append(f"m{x - last_x} {y - last_y}h{length}v1h-{length}z")
            last_x, last_y = x, y
    return "".join(parts)


def _runs(row: list[int]) -> list[tuple[int, int]]:
    """Return (start, length) of each dark run of a row; the start includes the quiet zone."""
    runs, x = [], QUIET_ZONE
    for dark, group in itertools.groupby(row):
        length = len(list(group))
        if dark:
            runs.append((x, length))
        x += length
    return runs
