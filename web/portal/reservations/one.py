"""One reservation: everything about it, and what staff do with it now."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlsplit

from aiohttp import web

from appliance.actions.amend_reservation import (
    Amendment,
    amend_reservation,
    mark_late,
    move_to_table,
    reissue_pass,
)
from appliance.actions.answer_request import accept, decline
from appliance.actions.as_seen import as_seen
from appliance.actions.cancel import cancel
from appliance.actions.check_in_by_staff import check_in_by_staff, undo_by_staff
from appliance.actions.erase_guest import erase_guest
from appliance.actions.export_guest import export_guests
from appliance.actions.note_security import note_security
from appliance.actions.record_payment import AMOUNT_MAX, record_payment, void_payment
from appliance.errors import NotFound, Refusal
from appliance.house_errors import UnusualAmount
from appliance.model.booking import EMAIL_MAX, NAME_MAX, NOTES_MAX, PHONE_MAX, parse_uuid
from appliance.model.reservation import Reservation
from appliance.model.venue import Table, Venue
from appliance.model.verdict import COLOURS, OVERRIDABLE, Verdict
from appliance.model.verdict_sentences import phrase
from appliance.store.claims import find_erasure_request
from appliance.store.connection import Reader, Transaction
from appliance.store.history import (
    HistoryEntry,
    Payment,
    count_other_bodies,
    list_history,
    list_payments,
    staff_names,
    sum_payments,
)
from appliance.store.readings import find_tonight
from appliance.store.reservations import get_reservation
from appliance.store.venue import find_table, get_venue, list_tables
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import attached, instants_of, language_of, portal_page, see_other
from web.portal.context import HOUSE, SESSION
from web.portal.forms import FORM, Form, field_error
from web.portal.guard import actor_of, id_of, staff_of
from web.portal.navigation import Handler, PortalRoute
from web.portal.reservations.new import free_tables
from web.portal.reservations.words import history_line, refusal_line

P = ParamSpec("P")
Act = Callable[[web.Request, Form], Awaitable[Verdict | None]]
GUESTS_MAX = 10_000
PAYMENT_METHODS = ("cash", "card", "transfer", "other")
_OPEN = frozenset({"requested", "pending", "partial", "confirmed"})


@dataclass(frozen=True, slots=True)
class Sent:
    """A form that was declined: its name, what was typed, and why in words."""

    form: str
    typed: Mapping[str, str]
    problem: str
    may_override: bool = False

    def of(self, form: str) -> Mapping[str, str]:
        """What was typed into that form; nothing unless it is the one."""
        return self.typed if form == self.form else {}


@dataclass(frozen=True, slots=True)
class Detail:
    """A reservation with its table, history and payments."""

    reservation: Reservation
    venue: Venue
    table: Table | None
    tables: tuple[Table, ...]
    movable: tuple[Table, ...]
    history: tuple[HistoryEntry, ...]
    payments: tuple[Payment, ...]
    paid: int
    other_bodies: int
    is_tonight: bool
    erasure_asked: int | None

    @property
    def names_guest(self) -> bool:
        """Whether there is anything to erase."""
        r = self.reservation
        return any((r.customer_name, r.customer_email, r.customer_phone, r.notes))

    @property
    def is_open(self) -> bool:
        """Whether it can still be changed."""
        return self.reservation.status in _OPEN


async def show_reservation(request: web.Request) -> web.Response:
    """`GET /portal/reservations/{id}`: the page, or with `?part=1` its part for the drawer."""
    return await detail_answer(request, id_of(request))


async def detail_answer(
    request: web.Request, reservation_id: str, sent: Sent | None = None, status: int = 200
) -> web.Response:
    """The reservation as it is now; `sent` is what was declined."""
    language, environment = language_of(request), request[ENVIRONMENT]
    detail = await environment.database.read(_read, reservation_id)
    names = await request[HOUSE].database.read(staff_names)
    in_words = instants_of(request)
    is_part = "part" in request.query or "HX-Request" in request.headers
    template = "drawer.html" if is_part else "detail.html"
    values: dict[str, object] = {
        "detail": detail,
        "r": detail.reservation,
        "day": language.long_date(date.fromisoformat(detail.reservation.date)),
        "history": [
            (
                in_words(entry.at),
                history_line(entry, names, detail.tables, detail.venue.currency, language),
            )
            for entry in detail.history
        ],
        "payments": [(p, in_words(p.at), names.get(p.staff_name or "")) for p in detail.payments],
        "in_words": in_words,
        "token": environment.database.tokens.new_link_secret(),
        "sent": sent or Sent("", {}, ""),
        "heading": 1 if _is_its_own_page(request, detail.reservation.id) else 2,
        "sees_guests": request[SESSION].person.may("host"),
    }
    return portal_page(request, f"portal/reservations/{template}", values, status)


def _read(reader: Reader, reservation_id: str) -> Detail:
    reservation = get_reservation(reader, reservation_id)
    free = free_tables(reader, reservation.date, (reservation.starts, reservation.ends))
    return Detail(
        reservation=reservation,
        venue=get_venue(reader),
        table=find_table(reader, reservation.table_id),
        tables=tuple(list_tables(reader)),
        movable=tuple(t for t in free if t.capacity_max >= reservation.guests),
        history=tuple(list_history(reader, reservation_id)),
        payments=tuple(list_payments(reader, reservation_id)),
        paid=sum_payments(reader, reservation_id),
        other_bodies=count_other_bodies(reader, reservation_id),
        is_tonight=find_tonight(reader).isoformat() == reservation.date,
        erasure_asked=find_erasure_request(reader, reservation_id),
    )


def _is_its_own_page(request: web.Request, reservation_id: str) -> bool:
    """Whether the name is the title of the page: not beside the board.

    A part takes the place of another, on whichever page that stands.
    """
    if "HX-Request" in request.headers:
        shown_on = urlsplit(request.headers.get("HX-Current-URL", "")).path
        return shown_on.endswith(f"/reservations/{reservation_id}")
    return "part" not in request.query


def _form(name: str) -> Callable[[Act], Handler]:
    """A handler around what one form does, whose refusals are shown beside the reservation.

    That is as it is now, and nothing that was typed is lost.
    """

    def around(act: Act) -> Handler:
        @wraps(act)
        async def handle(request: web.Request) -> web.StreamResponse:
            reservation_id = id_of(request)
            form = request[FORM]
            try:
                verdict = await act(request, form)
            except NotFound:
                raise
            except Refusal as refusal:
                sentence = refusal_line(refusal, language_of(request))
                override = isinstance(refusal, UnusualAmount)
                sent = Sent(name, form.typed(), sentence, may_override=override)
                return await detail_answer(request, reservation_id, sent, status=refusal.status)
            if verdict is not None and not verdict.admitted:
                sentence = phrase(verdict, language_of(request).code).staff
                override = verdict.result in OVERRIDABLE
                sent = Sent(name, form.typed(), sentence, may_override=override)
                return await detail_answer(request, reservation_id, sent, status=409)
            if "HX-Request" in request.headers:
                return await detail_answer(request, reservation_id)
            return see_other(request, f"/reservations/{reservation_id}", "saved")

        return handle

    return around


@_form("amend")
async def amend(request: web.Request, form: Form) -> None:
    """`POST …/amend`: party, customer, notes."""
    amendment = Amendment(
        guests=form.whole("guests", 1, GUESTS_MAX),
        customer_name=form.text("customer_name", NAME_MAX),
        customer_email=form.text("customer_email", EMAIL_MAX) or None,
        customer_phone=form.text("customer_phone", PHONE_MAX) or None,
        notes=form.lines("notes", NOTES_MAX) or None,
        vip=form.ticked("vip"),
    )
    await request[ENVIRONMENT].database.write(
        amend_reservation, id_of(request), _seen(form), amendment, actor=actor_of(request)
    )


@_form("move")
async def move(request: web.Request, form: Form) -> None:
    """`POST …/move`: to another table."""
    table_id = parse_uuid(form.text("table")) or ""
    await request[ENVIRONMENT].database.write(
        move_to_table, id_of(request), _seen(form), table_id, actor=actor_of(request)
    )


@_form("late")
async def late(request: web.Request, form: Form) -> None:
    """`POST …/late`: the party called, or is on time after all."""
    await request[ENVIRONMENT].database.write(
        mark_late, id_of(request), _seen(form),
        late=form.ticked("late"), actor=actor_of(request),
    )  # fmt: skip


@_form("new-code")
async def new_code(request: web.Request, form: Form) -> None:
    """`POST …/new-code`: another pass for this guest; the one that went round is refused."""
    await request[ENVIRONMENT].database.write(
        reissue_pass, id_of(request), _seen(form), actor=actor_of(request)
    )


@_form("payment")
async def pay(request: web.Request, form: Form) -> None:
    """`POST …/payment`: money was received; a form sent twice is one payment."""
    await _as_seen(
        request,
        form,
        record_payment,
        amount=form.whole("amount", 1, AMOUNT_MAX),
        method=form.one_of("method", PAYMENT_METHODS),
        complete=form.ticked("complete"),
        actor=actor_of(request),
        sure=form.text("sure") == form.text("amount"),
    )


@_form("void")
async def void(request: web.Request, form: Form) -> None:
    """`POST …/void`: a payment counts no more."""
    reason = form.text("reason")
    if not reason:
        raise field_error("void_reason", "un motif.", "a reason.")
    payment_id = form.text("payment", 64)
    await _as_seen(request, form, void_payment, payment_id, reason=reason, actor=actor_of(request))


@_form("check-in")
async def check_in_one(request: web.Request, form: Form) -> Verdict | None:
    """`POST …/check-in`: as at the door; amber and red need a reason."""
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
    return None if COLOURS[decided.verdict.result] == "green" else decided.verdict


@_form("undo")
async def undo_one(request: web.Request, form: Form) -> None:
    """`POST …/undo`: the latest check-in is taken back."""
    reason = form.needed("reason", "un motif.", "a reason.")
    await _as_seen(request, form, undo_by_staff, staff_of(request), reason)


async def _as_seen(
    request: web.Request,
    form: Form,
    action: Callable[Concatenate[Transaction, str, P], Any],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Run the action, unless somebody changed the reservation since the form was made."""
    seen = _seen(form)

    def act(tx: Transaction) -> None:
        as_seen(tx, id_of(request), seen, action, *args, **kwargs)

    await request[ENVIRONMENT].database.write(act)


def _seen(form: Form) -> int:
    """The version of the reservation that the author of the form saw."""
    return form.whole("seen", 1, 2**31)


def _plainly(name: str, action: Callable[..., Any]) -> Handler:
    """A handler of a form that only says that it is to be done."""

    async def act(request: web.Request, form: Form) -> None:
        await _as_seen(request, form, action, actor=actor_of(request))

    return _form(name)(act)


async def export_one(request: web.Request) -> web.Response:
    """`GET /portal/reservations/{id}/held.json`: what is held of one guest, as a file for them.

    The same as the guest's own page gives them (law 09-08).
    """
    database, reservation_id = request[ENVIRONMENT].database, id_of(request)
    held = await database.read(export_guests, [reservation_id])
    name = f"reservation-{reservation_id}.json"
    await database.write(note_security, actor_of(request), "exported", name=name)
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
    _hosts(f"{_ONE}/cancel", handler=_plainly("cancel", cancel)),
    _hosts(f"{_ONE}/accept", handler=_plainly("accept", accept)),
    _hosts(f"{_ONE}/decline", handler=_plainly("decline", decline)),
    _hosts(f"{_ONE}/payment", handler=pay),
    _hosts(f"{_ONE}/void", handler=void),
    # The house forgets who it was for; the table stays held (law 09-08).
    PortalRoute("POST", f"{_ONE}/erase", "manager", _plainly("erase", erase_guest)),
    PortalRoute("GET", f"{_ONE}/held.json", "manager", export_one),
)
