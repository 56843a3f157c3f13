"""Read the start of a web page. The doctor, the portal and the search for boxes share this."""

import asyncio
import ssl

import aiohttp


async def get_start(
    url: str, size: int, seconds: float, *, tls: ssl.SSLContext | bool, follows: bool = False
) -> tuple[int, bytes]:
    """Send a GET request. Return the status and the first `size` bytes of the body.

    `tls` is what aiohttp accepts as `ssl`. Redirects are followed only if `follows` is true.
    Raises TimeoutError after `seconds`, aiohttp.ClientError or OSError.
    """
    start = b""
    async with (
        asyncio.timeout(seconds),
        aiohttp.ClientSession() as session,
        session.get(url, ssl=tls, allow_redirects=follows) as response,
    ):
        async for block in response.content.iter_any():
            start += block
            if len(start) >= size:
                break
        return response.status, start[:size]
