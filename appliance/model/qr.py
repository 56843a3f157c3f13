"""QR codes of guest passes: level M, alphanumeric mode, quiet zone of 4 modules (door.md)."""

import io
import itertools

import pyqrcode

QUIET_ZONE = 4


def qr_svg(text: str) -> str:
    """`text` as an SVG element, black on white with its quiet zone, one user unit a module.

    `text` is of QR's alphanumeric set; ValueError otherwise. Takes some 20 ms of pure Python:
    call it in a thread and keep the result.
    """
    rows = _modules(text)
    side = len(rows) + 2 * QUIET_ZONE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}"'
        ' shape-rendering="crispEdges" aria-hidden="true">'
        f'<path fill="#fff" d="M0 0h{side}v{side}H0z"/>'
        f'<path fill="#000" d="{_path(rows)}"/></svg>'
    )


def qr_png(text: str, scale: int) -> bytes:
    """The same as a PNG in two colours, `scale` pixels a module: for letters."""
    file = io.BytesIO()
    _encode(text).png(file, scale=scale, quiet_zone=QUIET_ZONE)
    return file.getvalue()


def _encode(text: str) -> pyqrcode.QRCode:
    return pyqrcode.create(text, error="M", mode="alphanumeric")


def _modules(text: str) -> list[list[int]]:
    modules: list[list[int]] = _encode(text).code
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
