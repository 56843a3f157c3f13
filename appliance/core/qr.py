"""QR codes of guest passes: level M, alphanumeric mode, quiet zone of 4 modules."""

import io
import itertools

import pyqrcode

QUIET_ZONE = 4
_PASS = {"error": "M", "mode": "alphanumeric"}
_LINK = {"error": "L", "mode": "binary", "encoding": "ascii"}
# Most consoles write light on dark: what is light in the code is written.
_BLOCKS = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}


def qr_svg(text: str) -> str:
    """`text` as an SVG element, black on white with its quiet zone, one user unit a module.

    `text` is of QR's alphanumeric set; ValueError otherwise. Takes some 20 ms of pure Python:
    call it in a thread and keep the result.
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
    """An address as an SVG element, as `qr_svg` draws it: for a phone's own camera."""
    return _svg(_modules(url, is_link=True))


def link_blocks(url: str) -> str:
    """An address in half blocks for a console, as `qr_blocks` draws it."""
    return _blocks(_modules(url, is_link=True))


def qr_png(text: str, scale: int) -> bytes:
    """The same as a PNG in two colours, `scale` pixels a module: for letters."""
    file = io.BytesIO()
    pyqrcode.create(text, **_PASS).png(file, scale=scale, quiet_zone=QUIET_ZONE)
    return file.getvalue()


def qr_blocks(text: str) -> str:
    """The same for a console, light on dark: two modules of height in each character."""
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
    """Every horizontal run of dark modules as one rectangle, placed relative to the last."""
    parts, last_x, last_y = [], 0, 0
    for y, row in enumerate(rows, QUIET_ZONE):
        for x, length in _runs(row):
            parts.append(f"m{x - last_x} {y - last_y}h{length}v1h-{length}z")
            last_x, last_y = x, y
    return "".join(parts)


def _runs(row: list[int]) -> list[tuple[int, int]]:
    """Where the dark runs of a row start, quiet zone included, and how long they are."""
    runs, x = [], QUIET_ZONE
    for dark, group in itertools.groupby(row):
        length = len(list(group))
        if dark:
            runs.append((x, length))
        x += length
    return runs
