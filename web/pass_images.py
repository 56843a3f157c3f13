"""The QR codes that guests look at again and again, drawn once."""

import asyncio
from collections import OrderedDict

from aiohttp import web

from appliance.model.qr import qr_svg


class PassImages:
    """The last `limit` QR codes as SVG, by the text they carry; 5.5 kB each."""

    def __init__(self, limit: int = 500) -> None:
        self._limit = limit
        self._images: OrderedDict[str, asyncio.Future[str]] = OrderedDict()

    async def svg(self, text: str) -> str:
        """The QR code of `text`, drawn in a thread the first time it is asked for."""
        image = self._images.get(text)
        if image is None or (image.done() and (image.cancelled() or image.exception())):
            image = asyncio.ensure_future(asyncio.to_thread(qr_svg, text))
            self._images[text] = image
        self._images.move_to_end(text)
        while len(self._images) > self._limit:
            self._images.popitem(last=False)
        return await asyncio.shield(image)  # one visitor who leaves does not stop the others


PASS_IMAGES = web.AppKey("pass_images", PassImages)
