"""`/portal/box`: one lamp, one sentence, and below them everything that makes it so."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from aiohttp import web
from markupsafe import Markup

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.doctor.check import Sentence, worst
from appliance.doctor.conditions import describe
from appliance.i18n import Language
from appliance.settings import RANGES
from appliance.store.conditions import list_conditions
from appliance.store.connection import Reader
from appliance.store.letters import count_letters, list_troubles
from appliance.store.venue import get_venue
from web.portal.answer import REFUSED, find_zone, language_of, moment, portal_page
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


async def show_box(request: web.Request, tried: object = None, recipient: str = "") -> web.Response:
    """`GET /portal/box`: with `?again=1` everything is looked at once more.

    `tried` is what came of a test letter to `recipient`.
    """
    box, language = request.app[BOX], language_of(request)
    again = request.method == "GET" and "again" in request.query
    findings = await request.app[EXAMINER].look(request, again=again)
    house = box.live.database
    zone = await house.read(find_zone)
    mail = await house.read(_read_mail)
    conditions = [c for e in box.environments for c in await e.database.read(list_conditions)]
    checks = list(findings.checks) if findings else []
    # The demo goes by settings of its own, and cannot restart.
    saved = saved_settings(request) if RESTART in request.app else box.settings
    typed = request[FORM].typed() if REFUSED in request else {}
    changing = "app_url" in typed or CHANGEABLE[0] in typed
    values: dict[str, object] = {
        "lamp": worst(checks) if findings else None,
        "checks": [
            (check, _text(check.finding, language), check.remedy and _text(check.remedy, language))
            for check in checks
            if check.name != "conditions" or check.status == "ok"  # else they are listed below
        ],
        "looked_at": moment(findings.at, zone, language) if findings else None,
        "conditions": [
            (moment(c.since, zone, language), _text(describe(c), language)) for c in conditions
        ],
        "leapt": any(c.name == CLOCK_LEAPT for c in conditions),
        "told": _in_full(machine_time(request, zone), language),
        "now": _in_full(_at(box.clock.now(), zone), language),
        "zone": zone.key,
        "tz_version": box.zones.version,
        "tz_source": box.zones.origin,
        "mail": mail,
        "troubles": [(moment(at, zone, language), trouble) for at, trouble in mail.troubles],
        "mail_settings": box.settings.mail,
        "tried": tried,
        "recipient": recipient,
        "waits": waits_for_restart(request),
        "book": f"{box.live.links.base}/book",
        "enabled": "booking.enabled" in typed if changing else saved.booking.enabled,
        "settings": {name: typed.get(name, setting(saved, name)) for name in CHANGEABLE},
        "saved": saved,
        "securities": SECURITIES,
        "ranges": RANGES,
        "may_restart": RESTART in request.app,
        "retention": box.settings.retention,
        "steps": await steps_of(request),
    }  # fmt: skip
    values |= await _read_backups(request)
    return portal_page(request, "portal/box/page.html", values)


def machine_time(request: web.Request, zone: ZoneInfo) -> datetime:
    """What this machine's clock says, in venue time, whether or not the box believes it."""
    return _at(request.app[BOX].machine_clock.now(), zone)


def _at(milliseconds: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone(zone)


def _in_full(time: datetime, language: Language) -> str:
    return f"{language.long_date(time.date())} {time:%H:%M}"


async def _read_backups(request: web.Request) -> dict[str, object]:
    box, house = request.app[BOX], request.app[BOX].live.database
    zone, venue = await house.read(find_zone), await house.read(get_venue)
    making = request.app[BACKING_UP].stage  # before the shelf: what ends now is looked at again
    shelf = await asyncio.to_thread(look_at_shelf, directory_of(request), box.settings, venue.id)
    return {
        "shelf": shelf,
        "size": language_of(request).size(shelf.record.size),
        "proven_at": moment(shelf.record.at, zone, language_of(request)),
        "making": making,
    }


@dataclass(frozen=True, slots=True)
class MailState:
    """How many letters are in which state, and what the latest that failed ran into."""

    waiting: int
    sent: int
    failed: int
    troubles: tuple[tuple[int, str], ...]


def _read_mail(reader: Reader) -> MailState:
    counts = count_letters(reader)
    return MailState(
        counts.get("waiting", 0),
        counts.get("sent", 0),
        counts.get("failed", 0),
        tuple(list_troubles(reader, _TROUBLES)),
    )


def _text(sentence: Sentence, language: Language) -> Markup:
    """Isolates become elements: nothing invisible is copied along with a command."""
    text = Markup.escape(sentence.text(language))
    text = text.replace("\N{FIRST STRONG ISOLATE}", Markup('<bdi class="code">'))
    return text.replace("\N{POP DIRECTIONAL ISOLATE}", Markup("</bdi>"))
