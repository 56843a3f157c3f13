"""`/portal/box`: state, settings and maintenance of the box."""

import asyncio
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from aiohttp import web
from markupsafe import Markup

from appliance.alerts import CLOCK_LEAPT, list_alerts
from appliance.backup.catalogue import read_record
from appliance.backup.recovery_key import ensure_recovery_key, kit_html
from appliance.clock_gate import confirm_clock
from appliance.core.i18n import Language
from appliance.core.settings import RANGES
from appliance.doctor.check import Sentence, describe, worst
from appliance.email.smtp import send_trial
from appliance.reservations.emails import SETTINGS_TROUBLE, Outcome, count_emails, list_email_errors
from appliance.reservations.request import is_email
from appliance.staff.audit_log import record_audit
from appliance.venue.rows import get_venue
from web.portal.box_jobs import BACKING_UP, EXAMINER, summarise_backups
from web.portal.box_settings import (
    Changes,
    directory_of,
    next_settings,
    save_settings,
    saved_settings,
    setting,
    waits_for_restart,
)
from web.portal.first_run import steps_of
from web.portal.forms import FORM, Form
from web.portal.guard import actor_of, check_person
from web.portal.navigation import PortalRoute
from web.portal.responses import (
    HEADERS,
    REFUSED,
    Declined,
    find_zone,
    instants_of,
    language_of,
    portal_page,
    refused_on,
    see_other,
)
from web.portal.session import BOX, HOUSE, RESTART
from web.rendering import content_policy

_TROUBLES = 5
# The numbers that the owner can change here; the booking page is a check box.
CHANGEABLE = (
    "guest.cancel_hours", "mail.reminder_hours", "door.early_minutes", "retention.contact_days",
)  # fmt: skip
SECURITIES = ("starttls", "tls", "none")


async def show_backups(request: web.Request) -> web.Response:
    """`GET /portal/box/backup`: the backup section, polled while a backup runs."""
    return portal_page(request, "portal/box/backups.html", await _read_backups(request))


async def show_box(
    request: web.Request, tried: Outcome | None = None, recipient: str = ""
) -> web.Response:
    """`GET /portal/box`: the page; with `?again=1` all checks run again.

    `tried` is the result of a test email to `recipient`.
    """
    box, language = request.app[BOX], language_of(request)
    again = request.method == "GET" and "again" in request.query
    checks, looked_at = await request.app[EXAMINER].look(request, again=again) or ([], None)
    house = box.live.database
    zone = await house.read(find_zone)
    conditions = [c for e in box.environments for c in await e.database.read(list_alerts)]
    # The demo uses its own settings and cannot restart.
    saved = saved_settings(request) if RESTART in request.app else box.settings
    typed = request[FORM].typed() if REFUSED in request else {}
    changing = "app_url" in typed or CHANGEABLE[0] in typed
    values: dict[str, object] = {
        "lamp": worst(checks) if looked_at else None,
        "checks": [  # alerts are listed separately
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
        "mail": {"waiting": 0, "sent": 0, "failed": 0, **await house.read(count_emails)},
        "troubles": await house.read(list_email_errors, _TROUBLES),
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
    """Return this machine's time in venue time, whether or not the box trusts the clock."""
    return datetime.fromtimestamp(request.app[BOX].machine_clock.now() / 1000, zone)


def _in_full(time: datetime, language: Language) -> str:
    return f"{language.long_date(time.date())} {time:%H:%M}"


async def _read_backups(request: web.Request) -> dict[str, object]:
    box, directory = request.app[BOX], directory_of(request)
    venue = await box.live.database.read(get_venue)
    making = request.app[BACKING_UP].stage  # before the list: a new one shows next time
    folder, kept = await asyncio.to_thread(summarise_backups, directory, box.settings, venue.id)
    record = await asyncio.to_thread(read_record, directory.root)
    return {
        "making": making,
        "folder": folder,
        "kept": kept,
        "record": record,
        "in_words": instants_of(request),
    }


def _text(sentence: Sentence, language: Language) -> Markup:
    """Replace isolate characters by elements, so that copied commands contain none."""
    text = Markup.escape(sentence.text(language))
    text = text.replace("\N{FIRST STRONG ISOLATE}", Markup('<bdi class="code">'))
    return text.replace("\N{POP DIRECTIONAL ISOLATE}", Markup("</bdi>"))


_PORT_MAX = 65535
_HOST_MAX = 253
_PASSWORD_MAX = 1000


async def send_test_email(request: web.Request) -> web.Response:
    """`POST /portal/box/test-letter`: send a test email with the saved settings."""
    recipient, language = request[FORM].text("recipient", 254), language_of(request)
    outcome = Outcome("refused", "no address")
    if is_email(recipient):
        venue = (await request[HOUSE].database.read(get_venue)).name
        subject = language.gettext("Test letter from %(venue)s", venue=" ".join(venue.split()))
        text = language.gettext("This box can send letters. Nothing more to do.")
        outcome = await send_trial(next_settings(request).mail, recipient, subject, text)
    return await show_box(request, outcome, recipient)


async def back_up(request: web.Request) -> web.StreamResponse:
    """`POST /portal/box/backup`: start a backup; the page shows its progress."""
    request.app[BACKING_UP].start(request.app[BOX], directory_of(request))
    return see_other(request, "/box#backups")


@refused_on(show_box, "password")
async def show_recovery_kit(request: web.Request, form: Form) -> web.Response:
    """`POST /portal/box/recovery-kit`: the sheet to print, after a password check (owner)."""
    await check_person(request, form.secret("password"))
    database = request[HOUSE].database
    await database.write(record_audit, actor_of(request), "recovery_kit_shown")
    tokens = request.app[BOX].tokens
    key = await asyncio.to_thread(ensure_recovery_key, directory_of(request), tokens)
    venue = await database.read(get_venue)
    # The sheet contains its styles, so that a saved copy prints the same.
    policy = content_policy(default_src="'none'", style_src="'unsafe-inline'", form_action="'none'")
    return web.Response(
        text=kit_html(key, venue.name),
        content_type="text/html",
        charset="utf-8",
        headers={**HEADERS, "Content-Security-Policy": policy},
    )


async def restart(request: web.Request) -> web.Response:
    """`POST /portal/box/restart`: apply the saved settings.

    Requests in progress finish; new ones wait a second or two.
    """
    if RESTART not in request.app:
        return await show_box(request)
    await request[HOUSE].database.write(record_audit, actor_of(request), "restarted")
    request.app[RESTART]()
    answer = portal_page(request, "portal/box/restarting.html", {})
    answer.force_close()  # the next request must reach the restarted box
    return answer


@refused_on(show_box, "app_url", *CHANGEABLE)
async def change_settings(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/settings`: write settings.toml; applied at the next start."""
    return await _save(
        request,
        {
            "booking.enabled": form.ticked("booking.enabled"),
            "server.app_url": form.text("app_url", 500).rstrip("/"),
            **{name: form.whole(name, *RANGES[name]) for name in CHANGEABLE},
        },
    )


@refused_on(show_box, "host", "port", "security", "user", "sender")
async def save_mail(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/mail`: set the mail server; applied at the next start.

    An empty password keeps the stored one, unless the host changes: another server must not
    receive it.
    """
    stored = saved_settings(request).mail
    host, user = form.text("host", _HOST_MAX), form.text("user")
    kept = stored.password if host.casefold() == stored.host.casefold() else ""
    password = form.secret("password")[:_PASSWORD_MAX] or kept
    changes: Changes = {
        "mail.host": host,
        "mail.port": form.whole("port", 1, _PORT_MAX),
        "mail.security": form.one_of("security", SECURITIES),
        "mail.user": user,
        "mail.password": password,
        "mail.sender": form.text("sender", 254),
    }
    if host and user and not password:
        _ = language_of(request).gettext
        raise Declined(
            _(
                "Nothing was saved: no password is known for this user name and this mail server. "
                "Please type it."
            )
        )
    return await _save(request, changes)


@refused_on(show_box, "day")
async def confirm(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/clock`: confirm this machine's clock, so that data may expire by it.

    The form asks for the day, so that the owner has looked at the clock.
    """
    zone = await request[HOUSE].database.read(find_zone)
    if form.text("day") != machine_time(request, zone).date().isoformat():
        _ = language_of(request).gettext
        sentence = _(
            "The box tells another day. Then its clock is wrong: have it set, or let the box "
            "reach a time server."
        )
        raise Declined(sentence, 422, "day")
    for environment in request.app[BOX].environments:
        await environment.database.write(confirm_clock, actor_of(request))
    return see_other(request, "/box", "clock-confirmed")


async def _save(request: web.Request, changes: Changes) -> web.Response:
    await save_settings(request, changes)
    return see_other(request, "/box", "saved-for-later" if waits_for_restart(request) else "saved")


_of_the_house = partial(PortalRoute, of_the_house=True)
_AT = "/portal/box"

BOX_ROUTES = (
    _of_the_house("GET", _AT, "manager", show_box),
    _of_the_house("GET", f"{_AT}/backup", "manager", show_backups),
    _of_the_house("POST", f"{_AT}/backup", "manager", back_up),
    _of_the_house("POST", f"{_AT}/clock", "owner", confirm),
    _of_the_house("POST", f"{_AT}/mail", "owner", save_mail),
    _of_the_house("POST", f"{_AT}/recovery-kit", "owner", show_recovery_kit),
    _of_the_house("POST", f"{_AT}/settings", "owner", change_settings),
    _of_the_house("POST", f"{_AT}/test-letter", "manager", send_test_email),
    _of_the_house("POST", f"{_AT}/restart", "owner", restart),
)
