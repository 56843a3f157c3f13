"""`/portal/box`: one lamp, one sentence, and below them everything that makes it so."""

import asyncio
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from aiohttp import web
from markupsafe import Markup

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.backup.shelf import read_record
from appliance.doctor.check import Sentence, worst
from appliance.doctor.conditions import describe
from appliance.i18n import Language
from appliance.model.letter import SETTINGS_TROUBLE, Outcome
from appliance.settings import RANGES
from appliance.store.conditions import list_conditions
from appliance.store.letters import count_letters, list_troubles
from appliance.store.venue import get_venue
from web.portal.answer import REFUSED, find_zone, instants_of, language_of, portal_page
from web.portal.box.backing_up import BACKING_UP, look_at_shelf
from web.portal.box.examining import EXAMINER
from web.portal.box.saved import directory_of, saved_settings, setting, waits_for_restart
from web.portal.context import BOX, RESTART
from web.portal.forms import FORM
from web.portal.setup import steps_of

_TROUBLES = 5
# The numbers that the owner may change here; the booking page is a box to tick.
CHANGEABLE = (
    "guest.cancel_hours", "mail.reminder_hours", "door.early_minutes", "retention.contact_days",
)  # fmt: skip
SECURITIES = ("starttls", "tls", "none")


async def show_backups(request: web.Request) -> web.Response:
    """`GET /portal/box/backup`: that part of the page, while a backup is being made."""
    return portal_page(request, "portal/box/backups.html", await _read_backups(request))


async def show_box(
    request: web.Request, tried: Outcome | None = None, recipient: str = ""
) -> web.Response:
    """`GET /portal/box`: with `?again=1` everything is looked at once more.

    `tried` is what came of a test letter to `recipient`.
    """
    box, language = request.app[BOX], language_of(request)
    again = request.method == "GET" and "again" in request.query
    checks, looked_at = await request.app[EXAMINER].look(request, again=again) or ([], None)
    house = box.live.database
    zone = await house.read(find_zone)
    conditions = [c for e in box.environments for c in await e.database.read(list_conditions)]
    # The demo goes by settings of its own, and cannot restart.
    saved = saved_settings(request) if RESTART in request.app else box.settings
    typed = request[FORM].typed() if REFUSED in request else {}
    changing = "app_url" in typed or CHANGEABLE[0] in typed
    values: dict[str, object] = {
        "lamp": worst(checks) if looked_at else None,
        "checks": [  # conditions are listed by themselves
            check for check in checks if check.name != "conditions" or check.status == "ok"
        ],
        "said": partial(_text, language=language),
        "describe": describe,
        "looked_at": looked_at,
        "conditions": conditions,
        "leapt": any(c.name == CLOCK_LEAPT for c in conditions),
        "told": _in_full(machine_time(request, zone), language),
        "now": _in_full(datetime.fromtimestamp(box.clock.now() / 1000, zone), language),
        "zone": zone,
        "box": box,
        "mail": {"waiting": 0, "sent": 0, "failed": 0, **await house.read(count_letters)},
        "troubles": await house.read(list_troubles, _TROUBLES),
        "tried": tried,
        "settings_trouble": SETTINGS_TROUBLE,
        "recipient": recipient,
        "waits": waits_for_restart(request),
        "enabled": "booking.enabled" in typed if changing else saved.booking.enabled,
        "settings": {name: typed.get(name, setting(saved, name)) for name in CHANGEABLE},
        "saved": saved,
        "securities": SECURITIES,
        "ranges": RANGES,
        "may_restart": RESTART in request.app,
        "steps": await steps_of(request),
        **await _read_backups(request),
    }
    return portal_page(request, "portal/box/page.html", values)


def machine_time(request: web.Request, zone: ZoneInfo) -> datetime:
    """What this machine's clock says, in venue time, whether or not the box believes it."""
    return datetime.fromtimestamp(request.app[BOX].machine_clock.now() / 1000, zone)


def _in_full(time: datetime, language: Language) -> str:
    return f"{language.long_date(time.date())} {time:%H:%M}"


async def _read_backups(request: web.Request) -> dict[str, object]:
    box, directory = request.app[BOX], directory_of(request)
    venue = await box.live.database.read(get_venue)
    making = request.app[BACKING_UP].stage  # before the shelf: what ends now is looked at again
    folder, kept = await asyncio.to_thread(look_at_shelf, directory, box.settings, venue.id)
    record = await asyncio.to_thread(read_record, directory.root)
    return {
        "making": making,
        "folder": folder,
        "kept": kept,
        "record": record,
        "in_words": instants_of(request),
    }


def _text(sentence: Sentence, language: Language) -> Markup:
    """Isolates become elements: nothing invisible is copied along with a command."""
    text = Markup.escape(sentence.text(language))
    text = text.replace("\N{FIRST STRONG ISOLATE}", Markup('<bdi class="code">'))
    return text.replace("\N{POP DIRECTIONAL ISOLATE}", Markup("</bdi>"))
