"""The QR codes that guests look at again and again, drawn once."""

import asyncio
from collections import OrderedDict
from typing import Any, cast

from aiohttp import web

from appliance.model.qr import qr_png, qr_svg


class PassImages:
    """The last `limit` QR codes as SVG or PNG, by the text they carry; 5.5 kB each.

    Whoever has one link may ask for its picture as often as they like: it costs one drawing.
    """

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._images: OrderedDict[tuple[Any, ...], asyncio.Future[Any]] = OrderedDict()

    async def svg(self, text: str) -> str:
        """The QR code of `text`, drawn in a thread the first time it is asked for."""
        return cast("str", await self._get(qr_svg, text))

    async def png(self, text: str, scale: int) -> bytes:
        """The same as a picture, `scale` pixels a module."""
        return cast("bytes", await self._get(qr_png, text, scale))

    async def _get(self, *call: Any) -> Any:
        image = self._images.get(call)
        if image is None or (image.done() and (image.cancelled() or image.exception())):
            image = self._images[call] = asyncio.ensure_future(asyncio.to_thread(*call))
        self._images.move_to_end(call)
        while len(self._images) > self._limit:
            self._images.popitem(last=False)
        return await asyncio.shield(image)  # one visitor who leaves does not stop the others


PASS_IMAGES = web.AppKey("pass_images", PassImages)
