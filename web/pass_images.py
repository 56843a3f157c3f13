"""The QR codes that guests look at again and again, drawn once."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from aiohttp import web

from appliance.model.qr import qr_png, qr_svg

T = TypeVar("T", str, bytes)


class PassImages:
    """The last `limit` QR codes as SVG and as PNG, by the text they carry; 5.5 kB each.

    Whoever has one link may ask for its picture as often as they like: it costs one drawing.
    """

    def __init__(self, limit: int = 500) -> None:
        self._svgs: _Drawings[str] = _Drawings(limit)
        self._pngs: _Drawings[bytes] = _Drawings(limit)

    async def svg(self, text: str) -> str:
        """The QR code of `text`, drawn in a thread the first time it is asked for."""
        return await self._svgs.get(text, lambda: qr_svg(text))

    async def png(self, text: str, scale: int) -> bytes:
        """The same as a picture, `scale` pixels a module: always the same for one text."""
        return await self._pngs.get(text, lambda: qr_png(text, scale))


class _Drawings(Generic[T]):
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._images: OrderedDict[str, asyncio.Future[T]] = OrderedDict()

    async def get(self, text: str, draw: Callable[[], T]) -> T:
        image = self._images.get(text)
        if image is None or (image.done() and (image.cancelled() or image.exception())):
            image = asyncio.ensure_future(asyncio.to_thread(draw))
            self._images[text] = image
        self._images.move_to_end(text)
        while len(self._images) > self._limit:
            self._images.popitem(last=False)
        return await asyncio.shield(image)  # one visitor who leaves does not stop the others


PASS_IMAGES = web.AppKey("pass_images", PassImages)
