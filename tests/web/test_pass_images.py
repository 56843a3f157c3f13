import asyncio

import web.pass_images as module
from web.pass_images import PassImages


class Artist:
    """Draws nothing, and counts how often it was asked."""

    def __init__(self, monkeypatch):
        self.asked = []
        self.fails = False
        monkeypatch.setattr(module, "qr_svg", self.draw)

    def draw(self, text):
        self.asked.append(text)
        if self.fails:
            raise MemoryError
        return f"<svg>{text}</svg>"


async def test_a_code_that_many_ask_for_at_once_is_drawn_once(monkeypatch):
    artist, images = Artist(monkeypatch), PassImages()

    drawn = await asyncio.gather(*(images.svg("A") for _ in range(20)))

    assert set(drawn) == {"<svg>A</svg>"}
    assert artist.asked == ["A"]


async def test_a_picture_that_one_guest_asks_for_again_and_again_is_drawn_once(monkeypatch):
    drawn = []
    monkeypatch.setattr(module, "qr_png", lambda text, _scale: drawn.append(text) or b"\x89PNG")
    images = PassImages()

    pictures = {await images.png(text, 16) for text in ("A", "A", "B", "A")}

    assert pictures == {b"\x89PNG"}
    assert drawn == ["A", "B"]


async def test_the_code_that_was_asked_for_longest_ago_is_forgotten_first(monkeypatch):
    artist, images = Artist(monkeypatch), PassImages(limit=2)

    for text in ("A", "B", "A", "C", "A", "B"):
        await images.svg(text)

    assert artist.asked == ["A", "B", "C", "B"]


async def test_a_drawing_that_failed_is_tried_again(monkeypatch):
    artist, images = Artist(monkeypatch), PassImages()
    artist.fails = True
    (failed,) = await asyncio.gather(images.svg("A"), return_exceptions=True)
    artist.fails = False

    assert isinstance(failed, MemoryError)
    assert await images.svg("A") == "<svg>A</svg>"


async def test_a_visitor_who_leaves_does_not_take_the_drawing_along(monkeypatch):
    artist, images = Artist(monkeypatch), PassImages()
    leaving, staying = (
        asyncio.ensure_future(images.svg("A")),
        asyncio.ensure_future(images.svg("A")),
    )
    await asyncio.sleep(0)
    leaving.cancel()

    assert await staying == "<svg>A</svg>"
    assert artist.asked == ["A"]
