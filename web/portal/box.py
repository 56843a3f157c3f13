"""The page `/portal/box`: state, settings, backups, clock, and a new box's setup steps."""

import asyncio
import html
import logging
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from aiohttp import web

from appliance.backup.catalogue import find_catalogue, list_backups, read_record
from appliance.backup.copies import CopyRecord, read_copy_record
from appliance.backup.create import Maker
from appliance.backup.recovery_key import ensure_recovery_key, kit_html
from appliance.box import Box, confirm_clock
from appliance.checks.check import Sentence, worst
from appliance.core.email_addresses import clean_email, is_email
from appliance.core.errors import (
    ChangedMeanwhile,
    OperatorError,
    ValidationError,
    field_invalid,
    log_exception,
)
from appliance.core.i18n import Language
from appliance.core.i18n import mark as _
from appliance.core.network import host_exists
from appliance.core.saved_settings import Changes, SettingFixed
from appliance.core.settings import Settings
from appliance.database.connection import Reader
from appliance.door.terminals import PORTAL_TERMINAL_ID, list_terminals
from appliance.email.smtp import send_once
from appliance.email.worker import resume_emails
from appliance.http.request import ENVIRONMENT
from appliance.http.security_headers import content_policy
from appliance.jobs.nightly import ANSWER_DAYS, LOG_DAYS
from appliance.reservations.email_queue import (
    SETTINGS_TROUBLE,
    Outcome,
    count_emails,
    list_email_errors,
)
from appliance.scheduler import run_in_daemon_thread
from appliance.staff.accounts import STEPS, hide_setup_steps, shows_setup_steps
from appliance.staff.audit_log import AUDIT_DAYS, record_audit
from appliance.venue.model import find_zone, fingerprint, get_venue, list_slots, list_tables
from appliance.venue.venue_file import UNFURNISHED
from web.monitoring import EXAMINER, OUTSIDE
from web.portal.cookies import BOX, LIVE
from web.portal.forms import FORM, Form
from web.portal.guard import actor_of, reauthenticate, staff_of
from web.portal.responses import HEADERS, REFUSED, Declined, language_of, portal_page, see_other
from web.portal.update import read_update_state
from web.rendering import Html

log = logging.getLogger(__name__)

_EMAIL_ERRORS_SHOWN = 5
# The settings in the mail form, which does not show the stored password.
_MAIL = ("mail.host", "mail.port", "mail.security", "mail.user", "mail.sender")
# The tab of each form, by the last part of the form's path.
_TAB_OF = {"backup": "backups", "recovery-kit": "backups",
           "update": "version", "mail": "mail", "test-letter": "mail"}  # fmt: skip
_TABS = ("health", "backups", "mail", "version")
_SECURITIES = ("starttls", "tls", "none")
_PORT_MAX = 65535
_HOST_MAX = 253
_PASSWORD_MAX = 1000


class _Provider(NamedTuple):
    """What a mail provider's customers enter. `hint` is shown beside it."""

    label: str
    host: str
    port: int
    security: str
    hint: str = ""


_APP_PASSWORD = _(
    "Create an “app password” in the security settings of your account and enter it here. The "
    "usual password is refused."
)
_PROVIDERS = {
    "gmail": _Provider("Gmail", "smtp.gmail.com", 587, "starttls", _APP_PASSWORD),
    "microsoft": _Provider("Microsoft 365", "smtp.office365.com", 587, "starttls", _APP_PASSWORD),
    "ovh": _Provider("OVH", "ssl0.ovh.net", 465, "tls"),
    "menara": _Provider(
        "Menara",
        "smtp.menara.ma",
        587,
        "starttls",
        _("If the test email fails, ask Maroc Telecom for the port."),
    ),
    "zoho": _Provider("Zoho", "smtp.zoho.com", 465, "tls"),
}


async def show_box(
    request: web.Request, tried: Outcome | None = None, recipient: str = ""
) -> web.Response:
    """`GET /portal/box`: show the tab `?tab=` of the box's page. `?again=1` reruns all checks.

    `?provider=` fills the mail form in with that provider's values.

    `tried` is the result of sending a test email to `recipient`.
    """
    box, language, live = request.app[BOX], language_of(request), request[LIVE].database
    again = request.method == "GET" and "again" in request.query
    outside = request.app[OUTSIDE]
    if again:
        await outside.check()
    checks, checked_at = await request.app[EXAMINER].look(again=again) or ([], None)
    zone = await live.read(find_zone)
    typed = request[FORM].typed() if REFUSED in request else {}
    values = {
        "tab": _tab_of(request),
        "providers": _PROVIDERS,
        "chosen": request.query.get("provider", ""),
        "lamp": worst(checks) if checked_at else None,
        "checks": checks,
        "said": partial(text_of, language=language),
        "looked_at": checked_at,
        "now": _in_full(datetime.fromtimestamp(box.clock.now() / 1000, zone), language),
        "zone": zone,
        "box": box,
        "mail": {"waiting": 0, "sent": 0, "failed": 0, **await live.read(count_emails)},
        "troubles": await live.read(list_email_errors, _EMAIL_ERRORS_SHOWN),
        "tried": tried,
        "settings_trouble": SETTINGS_TROUBLE,
        "recipient": recipient,
        "periods": [
            (
                _("Guests’ names, contact details and notes, after their evening"),
                (await live.read(get_venue)).contact_days,
            ),
            (_("Webhook deliveries and their attempts"), LOG_DAYS),
            (_("Partners’ responses"), ANSWER_DAYS),
            (_("Security log"), AUDIT_DAYS),
        ],
        "mail_seen": typed["seen"] if "host" in typed else _mark(box.settings, _MAIL),
        "steps": await steps_of(request),
        "all_steps": await steps_of(request, always=True),
        **await _read_backups(request),
        **await read_update_state(request),
    }
    return portal_page(request, "portal/box/page.html", values)


def _tab_of(request: web.Request) -> str:
    """Return the tab of the form that was sent, or else the one that the URL names."""
    wanted = _TAB_OF.get(request.path.rpartition("/")[2]) or request.query.get("tab", "")
    return wanted if wanted in _TABS else _TABS[0]


def _in_full(time: datetime, language: Language) -> str:
    return f"{language.long_date(time.date())} {time:%H:%M}"


def text_of(sentence: Sentence, language: Language) -> Html:
    """Return the sentence as HTML, with `<bdi>` elements instead of Unicode isolates.

    Isolates are invisible characters. Users would copy them together with a command.
    """
    text = html.escape(sentence.text(language))
    text = text.replace("\N{FIRST STRONG ISOLATE}", '<bdi class="code">')
    return Html(text.replace("\N{POP DIRECTIONAL ISOLATE}", "</bdi>"))


async def show_backups(request: web.Request) -> web.Response:
    """`GET /portal/box/backup`: show the backup section. The page polls this during a backup."""
    values = {**await _read_backups(request), "is_part": True}
    return portal_page(request, "portal/box/backups.html", values)


async def _read_backups(request: web.Request) -> dict[str, object]:
    box = request.app[BOX]
    # Read the stage first. If the backup then ends before the list is read, the page polls again.
    making = request.app[BACKING_UP].stage
    folder, kept = await asyncio.to_thread(summarise_backups, box)
    return {
        "making": making,
        "folder": folder,
        "kept": kept,
        "record": await asyncio.to_thread(read_record, box.directory.root),
        "copies": await asyncio.to_thread(find_copies, box),
    }


async def back_up(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST /portal/box/backup`: start a backup. The page shows its progress."""
    request.app[BACKING_UP].start(request.app[BOX])
    return see_other(request, "/box?tab=backups")


async def send_test_email(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/test-letter`: send a test email with the saved settings."""
    recipient, language = clean_email(form.text("recipient", 254)), language_of(request)
    if not is_email(recipient):
        raise field_invalid("recipient", "please give an email address.")
    venue = (await request[LIVE].database.read(get_venue)).name
    subject = language.gettext("Test email from %(venue)s", venue=" ".join(venue.split()))
    text = language.gettext("This box can send emails. There is nothing more to do.")
    outcome = await send_once(request.app[BOX].settings.mail, recipient, venue, subject, text)
    return await show_box(request, outcome, recipient)


async def show_recovery_kit(request: web.Request, form: Form) -> web.Response:
    """`POST /portal/box/recovery-kit`: check the password and show the printable recovery kit."""
    await reauthenticate(request, form.secret("password"))
    box, database = request.app[BOX], request[LIVE].database
    await database.write(record_audit, actor_of(request), "recovery_kit_shown")
    key = await asyncio.to_thread(ensure_recovery_key, box.directory)
    venue = await database.read(get_venue)
    # The styles are in the page itself, because a saved copy must look the same.
    policy = content_policy(default_src="'none'", style_src="'unsafe-inline'", form_action="'none'")
    return web.Response(
        text=kit_html(key, venue.name, box.settings.backup.target),
        content_type="text/html",
        charset="utf-8",
        headers={**HEADERS, "Content-Security-Policy": policy},
    )


async def confirm(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST /portal/box/clock`: trust the machine's clock, even against the stored times."""
    box = request.app[BOX]
    box.clock.believe(box.clock.machine.now())
    await box.live.database.write(confirm_clock, actor_of(request))
    await request.app[EXAMINER].look(again=True)
    return see_other(request, "/box", "clock-confirmed")


SAVING = web.AppKey("saving", asyncio.Lock)
"""Held while settings are stored: two forms at once must not overwrite each other's."""


def _setting(settings: Settings, name: str) -> object:
    """Return the value of the setting `name`, which has the form `section.item`."""
    section, _, item = name.partition(".")
    return getattr(getattr(settings, section), item)


def _mark(settings: Settings, names: Iterable[str]) -> str:
    """Return the fingerprint of the settings that a form shows."""
    return fingerprint([_setting(settings, name) for name in names])


async def save_mail(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/box/mail`: save the mail settings, and send the waiting emails by them.

    If the password is empty, the stored password is kept, but only for the same host, because a
    different server must not receive it.
    """
    stored = request.app[BOX].settings.mail
    host, user = form.text("host", _HOST_MAX), form.text("user")
    kept = stored.password if host.casefold() == stored.host.casefold() else ""
    password = form.secret("password")[:_PASSWORD_MAX] or kept
    changes: Changes = {
        "mail.host": host,
        "mail.port": form.integer("port", 1, _PORT_MAX),
        "mail.security": form.one_of("security", _SECURITIES),
        "mail.user": user,
        "mail.password": password,
        "mail.sender": form.text("sender", 254),
    }
    if host and user and not password:
        _ = language_of(request).gettext
        raise Declined(
            _(
                "Nothing was saved: no password is stored for this user name and mail server. "
                "Please enter it."
            )
        )
    answer = await save_changes(request, changes, shown=_MAIL)
    await request[LIVE].database.write(resume_emails)
    return answer


async def save_changes(
    request: web.Request, changes: Changes, page: str = "/box", shown: Iterable[str] = ()
) -> web.Response:
    """Store the changed settings, apply them immediately, and redirect to `page`.

    The page says so if DNS does not know the name in a new public address. The names of the
    changed settings are recorded in the audit log. Raises ChangedMeanwhile if one of the settings
    in `shown` has changed since the form showed it, Declined if `settings.toml` or the environment
    sets one of them or the box does not store settings, and ValidationError if a value is invalid.
    """
    box, _ = request.app[BOX], language_of(request).gettext
    async with request.app[SAVING]:
        known = box.settings
        if shown and request[FORM].text("seen", 64) != _mark(known, shown):
            raise ChangedMeanwhile
        edited = {
            name: value for name, value in changes.items()
            if _setting(known, name) != (tuple(value) if isinstance(value, list) else value)
        }  # fmt: skip
        if edited and box.save_settings is None:
            raise Declined(_("Nothing was saved: the demo keeps its settings."))
        try:
            if edited and box.save_settings is not None:
                box.apply(await asyncio.to_thread(box.save_settings, edited))
        except SettingFixed as fixed:
            raise Declined(
                _(
                    "Nothing was saved: %(name)s is set in %(place)s. Please change it there.",
                    name=fixed.name,
                    place=fixed.place,
                )
            ) from None
        except (OSError, OperatorError) as failure:
            raise _field_error_of(changes, str(failure)) from None
    if edited:
        await request[LIVE].database.write(
            record_audit, actor_of(request), "settings_changed", name=", ".join(edited)
        )
    page = f"{page}?tab={_tab_of(request)}" if page == "/box" else page
    host = urlsplit(str(edited.get("server.app_url", ""))).hostname
    if host and not await host_exists(host):
        return see_other(request, page, "saved-unknown-name")
    return see_other(request, page, "saved")


def _field_error_of(changes: Iterable[str], failure: str) -> ValidationError:
    """Find the setting that the message `failure` names, and return an error for its field."""
    wrong = next((name for name in changes if failure.startswith(f"{name} is ")), None)
    if wrong is None:
        return field_invalid(
            "settings",
            "the box cannot store its settings: see the checks on the page “The box”.",
        )
    rules = {
        "server.app_url": _(
            "please give a whole address without a path, such as https://box.example.com."
        ),
        "mail.sender": _("please give the email address that emails come from."),
    }
    return field_invalid(
        wrong.partition(".")[2], rules.get(wrong, _("please give an allowed value."))
    )


async def steps_of(request: web.Request, *, always: bool = False) -> list[tuple[str, bool]]:
    """Return the setup steps as (name, is done) pairs.

    The list is empty in the test environment and for staff who are not owners. Unless `always` is
    true, it is also empty if all steps are done or left for later.
    """
    live = request[LIVE]
    if request[ENVIRONMENT] is not live or not staff_of(request).may("owner"):
        return []
    done, is_shown = await live.database.read(lambda r: (_finished_steps(r), shows_setup_steps(r)))
    settings = request.app[BOX].settings
    done |= {"mail"} if settings.mail.host else set()
    done |= {"address"} if settings.server.app_url else set()
    is_shown &= not done >= set(STEPS)
    return [(name, name in done) for name in STEPS] if always or is_shown else []


async def close_first_run(request: web.Request, _form: Form) -> web.Response:
    """`POST /portal/box/setup-done`: leave the setup steps for later. The page keeps a list."""
    await request[LIVE].database.write(hide_setup_steps)
    return see_other(request, "/tonight", "steps-later")


def _finished_steps(reader: Reader) -> set[str]:
    done = {
        "venue": get_venue(reader).name != UNFURNISHED.name,
        "tables": bool(list_tables(reader)),
        "slots": bool(list_slots(reader)),
        "phone": any(terminal.id != PORTAL_TERMINAL_ID for terminal in list_terminals(reader)),
    }
    return {name for name, is_done in done.items() if is_done}


class BackingUp:
    """Makes backups on request. The result is recorded on disk, as for nightly backups."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._stage = ("copy", 0)

    @property
    def stage(self) -> tuple[str, int] | None:
        """Return the running backup's stage (copy, seal or prove) and percentage, or None."""
        return None if self._task is None or self._task.done() else self._stage

    def start(self, box: Box) -> None:
        """Start a backup unless one is running."""
        if self.stage is None:
            self._stage = ("copy", 0)
            self._task = asyncio.get_running_loop().create_task(self._make(box))

    async def close(self, _app: web.Application) -> None:
        """Cancel the running backup, if any. Existing backups are unaffected."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self, box: Box) -> None:
        maker = Maker(box.directory, box.settings, box.clock, box.zones, self._set_stage)
        try:
            await run_in_daemon_thread(maker.make)
        except OperatorError as failure:  # the page shows the failure
            log.warning("portal: backup failed: %s", failure)
        except Exception as error:  # noqa: BLE001 - the failure must not stop the box
            log_exception("portal: backup", error)

    def _set_stage(self, stage: str, done: int, total: int) -> None:
        """Set the stage and its percentage. Called from the backup thread."""
        self._stage = (stage, min(100, 100 * done // max(total, 1)))


BACKING_UP = web.AppKey("backing_up", BackingUp)


def summarise_backups(box: Box) -> tuple[Path | None, int]:
    """Return the backup folder, or None if it is missing, and the number of backups in it.

    Call this in a thread, because a volume may not answer.
    """
    try:
        folder = find_catalogue(box.directory, box.settings)
        return folder, len(list_backups(folder))
    except (OperatorError, OSError):
        return None, 0


def find_copies(box: Box) -> CopyRecord:
    """Return the record of the copies at the backup target, or an empty record if there is none."""
    record = read_copy_record(box.directory.root)
    return record if record.target == box.settings.backup.target else CopyRecord()
