"""One reservation: its page, and all staff actions on it."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from appliance.core.errors import ApiError, NotFound, UnusualAmount
from appliance.core.i18n import isolate
from appliance.database.connection import Reader
from appliance.door.check_in import check_in_by_staff, undo_by_staff
from appliance.door.verdict import COLOURS, OVERRIDABLE, phrase
from appliance.http.request import ENVIRONMENT
from appliance.privacy import erase_guest, export_guests
from appliance.reservations.change import (
    accept,
    amend_reservation,
    as_seen,
    cancel,
    decline,
    mark_late,
    move_to_table,
    reissue_pass,
)
from appliance.reservations.payments import AMOUNT_MAX, record_payment, void_payment
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import (
    count_other_bodies,
    find_erasure_request,
    get_reservation,
    list_history,
    list_payments,
    staff_names,
    sum_payments,
)
from appliance.staff.audit_log import record_audit
from appliance.venue.rows import find_table, find_tonight, get_venue, list_tables
from web.portal.forms import FORM, Form, field_error
from web.portal.guard import actor_of, id_of, staff_of
from web.portal.navigation import Handler, PortalRoute
from web.portal.reservation_form import STATUS_WORDS, free_tables, read_guest
from web.portal.responses import (
    Declined,
    attached,
    instants_of,
    language_of,
    portal_page,
    refusal_text,
    see_other,
)
from web.portal.session import HOUSE, SESSION

Act = Callable[[web.Request, Form], Awaitable[object]]
PAYMENT_METHODS = ("cash", "card", "transfer", "other")
_OPEN = frozenset({"requested", "pending", "partial", "confirmed"})


class _NotAdmitted(Declined):
    """The door's checks reject the check-in; staff may override with a reason."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A rejected form: its name, the entered values, and the error text."""

    form: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    refusal: ApiError | Declined | None = None
    problem: str = ""

    @property
    def may_override(self) -> bool:
        """Return whether it can be sent again with a reason or a confirmation."""
        return isinstance(self.refusal, UnusualAmount | _NotAdmitted)

    def of(self, form: str) -> Mapping[str, str]:
        """Return the values entered in that form; empty for another form."""
        return self.typed if form == self.form else {}


async def show_reservation(request: web.Request) -> web.Response:
    """`GET /portal/reservations/{id}`: the page, or with `?part=1` the part for the drawer."""
    return await detail_answer(request, Sent())


async def detail_answer(request: web.Request, sent: Sent) -> web.Response:
    """Return the current reservation; `sent` is the rejected form."""
    environment = request[ENVIRONMENT]
    detail = await environment.database.read(_read, id_of(request))
    is_part = "part" in request.query or "HX-Request" in request.headers
    values: dict[str, object] = {
        "detail": detail,
        "r": detail["reservation"],
        "names": await request[HOUSE].database.read(staff_names),
        "in_words": instants_of(request),
        "isolate": isolate,
        "statuses": STATUS_WORDS,
        "token": environment.database.tokens.new_link_secret(),
        "sent": sent,
        "heading": 1 if _is_its_own_page(request) else 2,
        "sees_guests": request[SESSION].person.may("host"),
    }
    template = f"portal/reservations/{'drawer' if is_part else 'detail'}.html"
    return portal_page(request, template, values, sent.refusal.status if sent.refusal else 200)


def _read(reader: Reader, reservation_id: str) -> dict[str, Any]:
    """Return a reservation with its table, history and payments."""
    r = get_reservation(reader, reservation_id)
    free = free_tables(reader, r.date, (r.starts, r.ends))
    return {
        "reservation": r,
        "venue": get_venue(reader),
        "table": find_table(reader, r.table_id),
        "tables": {table.id: table.number for table in list_tables(reader)},
        "movable": [table for table in free if table.capacity_max >= r.guests],
        "history": list_history(reader, reservation_id),
        "payments": list_payments(reader, reservation_id),
        "paid": sum_payments(reader, reservation_id),
        "other_bodies": count_other_bodies(reader, reservation_id),
        "is_tonight": find_tonight(reader).isoformat() == r.date,
        "erasure_asked": find_erasure_request(reader, reservation_id),
        "names_guest": any((r.customer_name, r.customer_email, r.customer_phone, r.notes)),
        "is_open": r.status in _OPEN,
    }


def _is_its_own_page(request: web.Request) -> bool:
    """Return whether the guest's name is the page title, as opposed to the board's drawer.

    A part replaces another on the page named by HX-Current-URL.
    """
    if "HX-Request" in request.headers:
        shown_on = urlsplit(request.headers.get("HX-Current-URL", "")).path
        return shown_on.endswith(f"/reservations/{id_of(request)}")
    return "part" not in request.query


def _form(act: Act) -> Handler:
    """Wrap a form's action; an error is shown beside the reservation.

    The page shows the current reservation and keeps the entered values.
    """

    @wraps(act)
    async def handle(request: web.Request) -> web.StreamResponse:
        form = request[FORM]
        try:
            await act(request, form)
        except NotFound:
            raise
        except (ApiError, Declined) as refusal:
            name = request.path.rpartition("/")[2]
            problem = refusal_text(refusal, language_of(request))
            return await detail_answer(request, Sent(name, form.typed(), refusal, problem))
        if "HX-Request" in request.headers:
            return await detail_answer(request, Sent())
        return see_other(request, f"/reservations/{id_of(request)}", "saved")

    return handle


@_form
async def amend(request: web.Request, form: Form) -> None:
    """`POST …/amend`: change party, customer or notes."""
    await _do(request, amend_reservation, read_guest(form))


@_form
async def move(request: web.Request, form: Form) -> None:
    """`POST …/move`: change the table."""
    await _do(request, move_to_table, parse_uuid(form.text("table")) or "")


@_form
async def late(request: web.Request, form: Form) -> None:
    """`POST …/late`: mark the party as late, or as on time again."""
    await _do(request, mark_late, late=form.ticked("late"))


@_form
async def new_code(request: web.Request, _: Form) -> None:
    """`POST …/new-code`: issue a new pass; the old one is rejected."""
    await _do(request, reissue_pass)


@_form
async def pay(request: web.Request, form: Form) -> None:
    """`POST …/payment`: record a payment; a repeated form records it once."""
    await _do(
        request,
        as_seen,
        record_payment,
        amount=form.whole("amount", 1, AMOUNT_MAX),
        method=form.one_of("method", PAYMENT_METHODS),
        complete=form.ticked("complete"),
        sure=form.text("sure") == form.text("amount"),
    )


@_form
async def void(request: web.Request, form: Form) -> None:
    """`POST …/void`: void a payment."""
    reason = form.text("reason")
    if not reason:
        raise field_error("void_reason", "un motif.", "a reason.")
    await _do(request, as_seen, void_payment, form.text("payment", 64), reason=reason)


@_form
async def check_in_one(request: web.Request, form: Form) -> None:
    """`POST …/check-in`: check in as at the door; amber and red need a reason."""
    environment = request[ENVIRONMENT]
    decided = await environment.database.write(
        check_in_by_staff,
        staff_of(request),
        id_of(request),
        form.text("token", 64) or environment.database.tokens.new_link_secret(),
        arrivals=form.whole("arrivals", 1, 255) if form.text("arrivals") else None,
        reason=form.text("reason") or None,
        early_minutes=environment.settings.door.early_minutes,
    )
    verdict = decided.verdict
    if COLOURS[verdict.result] != "green" and not verdict.admitted:
        declined = _NotAdmitted if verdict.result in OVERRIDABLE else Declined
        raise declined(phrase(verdict, language_of(request).code).staff, 409)


@_form
async def undo_one(request: web.Request, form: Form) -> None:
    """`POST …/undo`: undo the latest check-in."""
    reason, seen = form.needed("reason", "un motif.", "a reason."), _seen(form)
    await request[ENVIRONMENT].database.write(
        as_seen, id_of(request), seen, undo_by_staff, staff_of(request), reason
    )


async def _do(
    request: web.Request, action: Callable[..., object], *args: Any, **kwargs: Any
) -> None:
    """Run the action. Fails if the reservation has changed since the form was shown."""
    seen, actor = _seen(request[FORM]), actor_of(request)
    await request[ENVIRONMENT].database.write(
        action, id_of(request), seen, *args, actor=actor, **kwargs
    )


def _seen(form: Form) -> int:
    """Return the version of the reservation that the form was based on."""
    return form.whole("seen", 1, 2**31)


def _plainly(action: Callable[..., object]) -> Handler:
    """Return a handler for a form without fields."""

    async def act(request: web.Request, _: Form) -> None:
        await _do(request, as_seen, action)

    return _form(act)


async def export_one(request: web.Request) -> web.Response:
    """`GET /portal/reservations/{id}/held.json`: all data about one guest, as a file.

    It equals the export on the guest's own page (law 09-08).
    """
    database, reservation_id = request[ENVIRONMENT].database, id_of(request)
    held = await database.read(export_guests, [reservation_id])
    name = f"reservation-{reservation_id}.json"
    await database.write(record_audit, actor_of(request), "exported", name=name)
    return attached(
        json.dumps(held, ensure_ascii=False, indent=2).encode(), "application/json", name
    )


_ONE = "/portal/reservations/{id}"
_hosts = partial(PortalRoute, "POST", role="host")

ONE_ROUTES = (
    PortalRoute("GET", _ONE, "door", show_reservation),
    PortalRoute("POST", f"{_ONE}/check-in", "door", check_in_one),
    PortalRoute("POST", f"{_ONE}/undo", "door", undo_one),
    _hosts(f"{_ONE}/amend", handler=amend),
    _hosts(f"{_ONE}/move", handler=move),
    _hosts(f"{_ONE}/late", handler=late),
    _hosts(f"{_ONE}/new-code", handler=new_code),
    _hosts(f"{_ONE}/cancel", handler=_plainly(cancel)),
    _hosts(f"{_ONE}/accept", handler=_plainly(accept)),
    _hosts(f"{_ONE}/decline", handler=_plainly(decline)),
    _hosts(f"{_ONE}/payment", handler=pay),
    _hosts(f"{_ONE}/void", handler=void),
    # Erases the guest's data; the reservation keeps its table (law 09-08).
    PortalRoute("POST", f"{_ONE}/erase", "manager", _plainly(erase_guest)),
    PortalRoute("GET", f"{_ONE}/held.json", "manager", export_one),
)
