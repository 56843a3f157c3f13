"""One attempt made by hand."""

import time

from appliance.webhooks.client import Budgets

REQUEST = b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
BUDGETS = Budgets(total=1.0, connect=0.5, drain=0.2, idle=4.0)


async def timed(awaitable):
    started = time.perf_counter()
    return await awaitable, time.perf_counter() - started
