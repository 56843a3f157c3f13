import asyncio

import web.pass_images as module
from web.pass_images import PassImages


class Artist:
    """Draws nothing, and counts how often it was asked."""

    def __init__(self, monkeypatch):
        self.asked = []
        monkeypatch.setattr(module, "qr_svg", self.draw)

    def draw(self, text):
        self.asked.append(text)
        return f"<svg>{text}</svg>"


async def test_a_code_that_many_ask_for_at_once_is_drawn_once(monkeypatch):
    artist, images = Artist(monkeypatch), PassImages()
    drawn = await asyncio.gather(*(images.svg("A") for _ in range(20)))
    assert set(drawn) == {"<svg>A</svg>"}
    assert artist.asked == ["A"]


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
