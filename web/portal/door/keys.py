"""`/portal/door/keys`: the keys that sign guest passes; a new one yearly, or after a leak."""

from aiohttp import web

from appliance.actions.rotate_signing_key import rotate_signing_key
from appliance.store.signing_keys import list_key_ages
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import portal_page, see_other
from web.portal.door.terminals import actor_of
from web.portal.door.words import instants_of
from web.portal.forms import read_form

_DAY = 24 * 3600 * 1000
_YEAR = 365


async def show_keys(request: web.Request) -> web.Response:
    """`GET …/keys`."""
    database = request[ENVIRONMENT].database
    keys = await database.read(list_key_ages)
    now = database.clock.now()
    signing = next((key for key in keys if key.retired_at is None), None)
    days = max(0, now - signing.created_at) // _DAY if signing else 0
    values: dict[str, object] = {
        "keys": keys,
        "days": days,
        "is_old": days > _YEAR,
        "in_words": instants_of(request),
    }
    return portal_page(request, "portal/door/keys.html", values)


async def rotate(request: web.Request) -> web.Response:
    """`POST …/keys/rotate`: a new key signs, passes already given stay good."""
    return await _rotate(request, leaked=False)


async def replace_leaked(request: web.Request) -> web.Response:
    """`POST …/keys/leaked`: older passes are worth nothing, links show new ones."""
    return await _rotate(request, leaked=True)


async def _rotate(request: web.Request, *, leaked: bool) -> web.Response:
    await read_form(request)
    environment = request[ENVIRONMENT]
    await environment.database.write(
        rotate_signing_key, environment.keyring, leaked=leaked, actor=actor_of(request)
    )
    return see_other(request, "/door/keys", "key-rotated")
