"""What staff do with one reservation: each form is one action, and answers with what it led to."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from aiohttp import web

from appliance.actions.amend_reservation import (
    Amendment,
    amend_reservation,
    mark_late,
    move_to_table,
)
from appliance.actions.answer_request import accept, decline
from appliance.actions.cancel import cancel
from appliance.actions.check_in_by_staff import check_in_by_staff, undo_by_staff
from appliance.actions.record_payment import AMOUNT_MAX, record_payment
from appliance.errors import Refusal
from appliance.model.booking import EMAIL_MAX, NAME_MAX, NOTES_MAX, PHONE_MAX, parse_uuid
from appliance.model.verdict import COLOURS
from appliance.model.verdict_sentences import phrase
from appliance.store.connection import Transaction
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, refusal_text, see_other
from web.portal.forms import Form, field_error, read_form
from web.portal.guard import staff_of
from web.portal.reservations.detail import detail_answer, reservation_id_of

P = ParamSpec("P")
GUESTS_MAX = 10_000
PAYMENT_METHODS = ("cash", "card", "transfer", "other")


async def amend(request: web.Request) -> web.Response:
    """`POST …/amend`: party, customer, notes."""
    form = await read_form(request)
    amendment = Amendment(
        guests=form.whole("guests", 1, GUESTS_MAX),
        customer_name=form.text("customer_name", NAME_MAX),
        customer_email=form.text("customer_email", EMAIL_MAX) or None,
        customer_phone=form.text("customer_phone", PHONE_MAX) or None,
        notes=form.lines("notes", NOTES_MAX) or None,
        vip=form.ticked("vip"),
    )
    return await _do(request, amend_reservation, _seen(form), amendment, actor=_actor(request))


async def move(request: web.Request) -> web.Response:
    """`POST …/move`: to another table."""
    form = await read_form(request)
    table_id = parse_uuid(form.text("table")) or ""
    return await _do(request, move_to_table, _seen(form), table_id, actor=_actor(request))


async def late(request: web.Request) -> web.Response:
    """`POST …/late`: the party called, or is on time after all."""
    form = await read_form(request)
    late_ = form.ticked("late")
    return await _do(request, mark_late, _seen(form), late=late_, actor=_actor(request))


async def cancel_one(request: web.Request) -> web.Response:
    """`POST …/cancel`: the table is free, partners are told."""
    return await _do(request, cancel, actor=_actor(request))


async def accept_one(request: web.Request) -> web.Response:
    """`POST …/accept`: a request becomes a reservation."""
    return await _do(request, accept, actor=_actor(request))


async def decline_one(request: web.Request) -> web.Response:
    """`POST …/decline`: a request is refused."""
    return await _do(request, decline, actor=_actor(request))


async def pay(request: web.Request) -> web.Response:
    """`POST …/payment`: money was received."""
    form = await read_form(request)
    method = form.text("method")
    if method not in PAYMENT_METHODS:
        raise field_error("method", "un moyen de la liste.", "one of the list.")
    return await _do(
        request,
        record_payment,
        amount=form.whole("amount", 1, AMOUNT_MAX),
        method=method,
        complete=form.ticked("complete"),
        actor=_actor(request),
    )


async def check_in_one(request: web.Request) -> web.Response:
    """`POST …/check-in`: as at the door; amber and red need a reason."""
    form = await read_form(request)
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
    verdict = decided.verdict
    problem = None
    if COLOURS[verdict.result] != "green" and not verdict.admitted:
        problem = phrase(verdict, language_of(request).code).staff
    return await _answer(request, problem, status=409 if problem else 200)


async def undo_one(request: web.Request) -> web.Response:
    """`POST …/undo`: the latest check-in is taken back."""
    form = await read_form(request)
    reason = form.text("reason")
    if not reason:
        raise field_error("reason", "un motif.", "a reason.")
    database = request[ENVIRONMENT].database
    await database.write(undo_by_staff, staff_of(request), reservation_id_of(request), reason)
    return await _answer(request)


async def _do(
    request: web.Request,
    action: Callable[Concatenate[Transaction, str, P], Any],
    *args: P.args,
    **kwargs: P.kwargs,
) -> web.Response:
    """Run the action; a refusal is shown beside the reservation as it is now."""
    reservation_id = reservation_id_of(request)
    try:
        await request[ENVIRONMENT].database.write(action, reservation_id, *args, **kwargs)
    except Refusal as refusal:
        problem = refusal_text(refusal, language_of(request))
        return await _answer(request, problem, status=refusal.status)
    return await _answer(request)


async def _answer(
    request: web.Request, problem: str | None = None, status: int = 200
) -> web.Response:
    reservation_id = reservation_id_of(request)
    if problem is not None or "HX-Request" in request.headers:
        return await detail_answer(request, reservation_id, problem=problem, status=status)
    return see_other(request, f"/reservations/{reservation_id}", "saved")


def _seen(form: Form) -> int:
    """The version of the reservation that the author of the form saw."""
    return form.whole("seen", 1, 2**31)


def _actor(request: web.Request) -> str:
    return f"staff:{staff_of(request).id}"
