"""Films for the fake camera of a browser."""

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from appliance.core.qr import qr_png

_FRAME = (640, 480)
_WALL = (38, 34, 30)


def film(path: Path, texts: Sequence[str], frames: int = 30, blank: int = 6, rest: int = 0) -> Path:
    """Make a film for the fake camera: each code for `frames` frames, then `blank` empty ones.

    The film loops; `rest` more empty frames separate the rounds.
    """
    with path.open("wb") as file:
        nothing = _jpeg(None) * blank
        for text in texts:
            file.write(_jpeg(text) * frames + nothing)
        file.write(_jpeg(None) * rest)
        if not texts:
            file.write(nothing)
    return path


def film_of_pictures(path: Path, *shots: tuple[Image.Image | None, int]) -> Path:
    """Make a looping film of (picture, number of frames); None is an empty wall."""
    path.write_bytes(b"".join(_frame(picture) * frames for picture, frames in shots))
    return path


def held_up(*codes: tuple[str, int]) -> Image.Image:
    """Draw codes, each with its distance to the right of the picture's centre."""
    wall = Image.new("RGB", _FRAME, _WALL)
    for text, aside in codes:
        code = Image.open(io.BytesIO(qr_png(text, 4))).convert("RGB")
        left = (_FRAME[0] - code.width) // 2 + aside
        wall.paste(code, (left, (_FRAME[1] - code.height) // 2))
    return wall


def small(text: str) -> Image.Image:
    """Draw a wide picture with a code of 74 pixels, which only the whole picture shows."""
    wall = Image.new("RGB", (1280, 720), _WALL)
    code = Image.open(io.BytesIO(qr_png(text, 8))).convert("RGB")
    wall.paste(code.resize((74, 74), Image.Resampling.LANCZOS), (400, 300))
    return wall


def _jpeg(text: str | None) -> bytes:
    """Draw a dim wall with a phone that shows the code."""
    return _frame(text and Image.open(io.BytesIO(qr_png(text, 6))).convert("RGB"))


def _frame(picture: Image.Image | None) -> bytes:
    """Draw a dim wall with the picture in its centre."""
    size = picture.size if picture is not None and picture.width > _FRAME[0] else _FRAME
    frame = Image.new("RGB", size, _WALL)
    if picture is not None:
        frame.paste(picture, ((_FRAME[0] - picture.width) // 2, (_FRAME[1] - picture.height) // 2))
    file = io.BytesIO()
    frame.save(file, "JPEG", quality=80)
    return file.getvalue()
