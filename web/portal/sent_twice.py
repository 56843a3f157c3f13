"""Forms that are sent twice while the box is slow: done once, and both are answered alike."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from appliance.tokens import Tokens
from terminal_bridge.context import ENVIRONMENT
from web.portal.context import SESSION
from web.portal.forms import Form
from web.portal.integrations.pages import memory, token_of


def new_token(request: web.Request) -> str:
    """For the hidden field `once` of a page's forms: another each time that the page is made."""
    tokens: Tokens = request[ENVIRONMENT].database.tokens
    return tokens.new_link_secret()


async def do_once(
    request: web.Request, form: Form, act: Callable[[], Awaitable[object]], what: str = ""
) -> None:
    """`act()`, unless this form has done it; `what` tells forms of one page apart."""

    async def run() -> str:
        await act()
        return ""

    token = token_of(form)
    await memory(request).once.do(request[SESSION].id, token and f"{what} {token}", run)


async def make_once(
    request: web.Request, form: Form, make: Callable[[], Awaitable[str]], what: str = ""
) -> str | None:
    """The secret that `make()` returns, or has returned for this form; None minutes later."""
    if not token_of(form):
        return await make()
    once, session_id = memory(request).once, request[SESSION].id
    subject = f"{what} {token_of(form)}"

    async def keep() -> None:
        once.put_secret(session_id, subject, await make())

    await do_once(request, form, keep, what)
    return once.peek_secret(session_id, subject)
