"""What staff do with one reservation: each form is one action, and answers with what it led to."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

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
from appliance.actions.record_payment import AMOUNT_MAX, record_payment, void_payment
from appliance.errors import NotFound, Refusal
from appliance.house_errors import UnusualAmount
from appliance.model.booking import EMAIL_MAX, NAME_MAX, NOTES_MAX, PHONE_MAX, parse_uuid
from appliance.model.verdict import COLOURS, OVERRIDABLE, Verdict
from appliance.model.verdict_sentences import phrase
from appliance.store.connection import Transaction
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, see_other
from web.portal.forms import Form, field_error, read_form
from web.portal.guard import staff_of
from web.portal.reservations.detail import Sent, detail_answer, reservation_id_of
from web.portal.reservations.words import refusal_line
from web.portal.route import Handler

P = ParamSpec("P")
Act = Callable[[web.Request, Form], Awaitable[Verdict | None]]
GUESTS_MAX = 10_000
PAYMENT_METHODS = ("cash", "card", "transfer", "other")


def _form(name: str) -> Callable[[Act], Handler]:
    """A handler around what one form does, whose refusals are shown beside the reservation.

    That is as it is now, and nothing that was typed is lost.
    """

    def around(act: Act) -> Handler:
        @wraps(act)
        async def handle(request: web.Request) -> web.StreamResponse:
            reservation_id = reservation_id_of(request)
            form = await read_form(request)
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
        amend_reservation, reservation_id_of(request), _seen(form), amendment, actor=_actor(request)
    )


@_form("move")
async def move(request: web.Request, form: Form) -> None:
    """`POST …/move`: to another table."""
    table_id = parse_uuid(form.text("table")) or ""
    await request[ENVIRONMENT].database.write(
        move_to_table, reservation_id_of(request), _seen(form), table_id, actor=_actor(request)
    )


@_form("late")
async def late(request: web.Request, form: Form) -> None:
    """`POST …/late`: the party called, or is on time after all."""
    await request[ENVIRONMENT].database.write(
        mark_late, reservation_id_of(request), _seen(form),
        late=form.ticked("late"), actor=_actor(request),
    )  # fmt: skip


@_form("new-code")
async def new_code(request: web.Request, form: Form) -> None:
    """`POST …/new-code`: another pass for this guest; the one that went round is refused."""
    await request[ENVIRONMENT].database.write(
        reissue_pass, reservation_id_of(request), _seen(form), actor=_actor(request)
    )


@_form("cancel")
async def cancel_one(request: web.Request, form: Form) -> None:
    """`POST …/cancel`: the table is free, partners are told."""
    await _as_seen(request, form, cancel, actor=_actor(request))


@_form("accept")
async def accept_one(request: web.Request, form: Form) -> None:
    """`POST …/accept`: a request becomes a reservation."""
    await _as_seen(request, form, accept, actor=_actor(request))


@_form("decline")
async def decline_one(request: web.Request, form: Form) -> None:
    """`POST …/decline`: a request is refused."""
    await _as_seen(request, form, decline, actor=_actor(request))


@_form("payment")
async def pay(request: web.Request, form: Form) -> None:
    """`POST …/payment`: money was received; a form sent twice is one payment."""
    method = form.text("method")
    if method not in PAYMENT_METHODS:
        raise field_error("method", "un moyen de la liste.", "one of the list.")
    await _as_seen(
        request,
        form,
        record_payment,
        amount=form.whole("amount", 1, AMOUNT_MAX),
        method=method,
        complete=form.ticked("complete"),
        actor=_actor(request),
        sure=form.text("sure") == form.text("amount"),
    )


@_form("void")
async def void(request: web.Request, form: Form) -> None:
    """`POST …/void`: a payment counts no more."""
    reason = form.text("reason")
    if not reason:
        raise field_error("void_reason", "un motif.", "a reason.")
    payment_id = form.text("payment", 64)
    await _as_seen(request, form, void_payment, payment_id, reason=reason, actor=_actor(request))


@_form("erase")
async def erase_one(request: web.Request, form: Form) -> None:
    """`POST …/erase`: the house forgets who it was for; the table stays held (law 09-08)."""
    await _as_seen(request, form, erase_guest, actor=_actor(request))


@_form("check-in")
async def check_in_one(request: web.Request, form: Form) -> Verdict | None:
    """`POST …/check-in`: as at the door; amber and red need a reason."""
    environment = request[ENVIRONMENT]
    decided = await environment.database.write(
        check_in_by_staff,
        staff_of(request),
        reservation_id_of(request),
        form.text("token", 64) or environment.database.tokens.new_link_secret(),
        arrivals=form.whole("arrivals", 1, 255) if form.text("arrivals") else None,
        reason=form.text("reason") or None,
        early_minutes=environment.settings.door.early_minutes,
    )
    return None if COLOURS[decided.verdict.result] == "green" else decided.verdict


@_form("undo")
async def undo_one(request: web.Request, form: Form) -> None:
    """`POST …/undo`: the latest check-in is taken back."""
    reason = form.text("reason")
    if not reason:
        raise field_error("reason", "un motif.", "a reason.")
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
        as_seen(tx, reservation_id_of(request), seen, action, *args, **kwargs)

    await request[ENVIRONMENT].database.write(act)


def _seen(form: Form) -> int:
    """The version of the reservation that the author of the form saw."""
    return form.whole("seen", 1, 2**31)


def _actor(request: web.Request) -> str:
    return f"staff:{staff_of(request).id}"
