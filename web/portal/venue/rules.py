"""`/portal/venue/rules`: what the venue says of itself, how it takes reservations, policies."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from appliance.actions.edit_venue import MODES, STATUSES, edit_venue
from appliance.errors import InvalidJson
from appliance.house_errors import ChangedMeanwhile
from appliance.model.strict_json import parse_object
from appliance.model.venue import fingerprint
from appliance.model.venue_file import ADDRESS_MAX
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import portal_page, see_other
from web.portal.forms import Form, field_error, read_form

_TEXTS = ("cancellation", "dressCode")
_NUMBERS = {"lateArrivalMinutes": (0, 24 * 60), "minimumAge": (0, 120)}
_KNOWN = (*_TEXTS, *_NUMBERS)
_HOURS_MAX = 24 * 365
_NAME_MAX = 200
_PAIR_MAX = 1000
_PAIRS_MAX = 50


async def show_rules(request: web.Request) -> web.Response:
    """`GET …/rules`."""
    venue = request[ENVIRONMENT].database.peek(get_venue)
    policies = venue.policies or {}
    values: dict[str, object] = {
        "venue": venue,
        "seen": fingerprint(venue),
        "statuses": STATUSES,
        "modes": MODES,
        "policies": policies,
        "others": _write_pairs(policies),
    }
    return portal_page(request, "portal/venue/rules.html", values)


async def save_rules(request: web.Request) -> web.Response:
    """`POST …/rules`: name, status, mode, times, and the way there."""
    form = await read_form(request)
    venue = request[ENVIRONMENT].database.peek(get_venue)
    wished = replace(
        venue,
        name=form.text("name", _NAME_MAX),
        slug=form.text("slug", 100),
        status=form.text("status"),
        reservation_mode=form.text("reservation_mode"),
        auto_confirm=form.ticked("auto_confirm"),
        request_expiry_hours=form.whole("request_expiry_hours", 1, _HOURS_MAX),
        currency=form.text("currency", 3),
        time_zone=form.text("time_zone", 60),
        evening_ends_at=form.text("evening_ends_at", 5),
        address=form.text("address", ADDRESS_MAX) or None,
        map_url=form.text("map_url", 500) or None,
    )
    await request[ENVIRONMENT].database.write(edit_venue, form.text("seen", 64), wished)
    return see_other(request, "/venue/rules", "saved")


async def save_policies(request: web.Request) -> web.Response:
    """`POST …/policies`: what guests and partners are told; an empty field says nothing."""
    form = await read_form(request)
    venue, seen = request[ENVIRONMENT].database.peek(get_venue), form.text("seen", 64)
    if fingerprint(venue) != seen:
        raise ChangedMeanwhile
    policies: dict[str, Any] = {}
    for name in _TEXTS:
        if form.lines(name, _PAIR_MAX):
            policies[name] = form.lines(name, _PAIR_MAX)
    for name, (smallest, largest) in _NUMBERS.items():
        if form.text(name):
            policies[name] = form.whole(name, smallest, largest)
    wished = replace(venue, policies={**policies, **_read_pairs(form)} or None)
    await request[ENVIRONMENT].database.write(edit_venue, seen, wished)
    return see_other(request, "/venue/rules", "saved")


def _write_pairs(policies: Mapping[str, Any]) -> str:
    """`name: value`, a line each; what is no text is written as JSON."""
    return "\n".join(
        f"{name}: {value if _is_plain(value) else json.dumps(value, ensure_ascii=False)}"
        for name, value in policies.items()
        if name not in _KNOWN
    )


def _read_pairs(form: Form) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for line in form.lines("others").split("\n"):
        name, separator, text = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not separator or not name or not text or name in {*pairs, *_KNOWN}:
            raise field_error("others", "« nom : valeur » par ligne.", "“name: value” on a line.")
        pairs[name] = _read_value(text)
    if len(pairs) > _PAIRS_MAX:
        raise field_error(
            "others", "{most} lignes au plus.", "at most {most} lines.", most=_PAIRS_MAX
        )
    return pairs


def _is_plain(value: object) -> bool:
    """Whether a text comes back as it is."""
    return isinstance(value, str) and "\n" not in value and _read_value(value) == value


def _read_value(text: str) -> Any:
    """JSON where it is JSON of one line, else the text as it stands."""
    try:
        value = parse_object(f'{{"value": {text}}}'.encode()).get("value")
    except InvalidJson:
        return text
    return text if value is None else value
