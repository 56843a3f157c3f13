"""The page `/portal/reservations/{id}`: a reservation and the staff's actions on it."""

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import web

from appliance.core.errors import ApiError, NotFound, UnusualAmount, field_invalid
from appliance.core.i18n import isolate
from appliance.database.connection import Reader
from appliance.door.check_in import (
    check_in_by_staff,
)
from appliance.door.parties import seat_walk_in
from appliance.door.undo import undo_by_staff
from appliance.door.verdict import COLOURS, OVERRIDABLE, phrase
from appliance.http.request import ENVIRONMENT
from appliance.privacy import export_guests
from appliance.reservations.change import (
    amend_reservation,
    as_seen,
    cancel,
    change_reservation,
    decline,
    mark_late,
    move_to_table,
    reissue_pass,
    send_pass,
)
from appliance.reservations.holds import get_seat, is_held
from appliance.reservations.model import (
    Reservation,
    evening_is_over,
    has_started,
    is_awaited,
    minutes_late,
    start_date,
)
from appliance.reservations.payments import AMOUNT_MAX, record_payment, void_payment
from appliance.reservations.request import check_customer, parse_uuid, read_contacts
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
from appliance.venue.model import Venue, find_tonight, get_venue, is_slot, list_tables
from web.portal.cookies import LIVE
from web.portal.forms import FORM, Form
from web.portal.guard import actor_of, id_of, staff_of, write_as_staff
from web.portal.navigation import FormHandler
from web.portal.reservation_form import (
    GUESTS_MAX,
    STATUS_WORDS,
    confirms_guests,
    faults_in_words,
    offer_places,
    read_guest,
    read_place,
    show_new,
)
from web.portal.responses import (
    REFUSED,
    Declined,
    clock_formatter,
    download_headers,
    language_of,
    portal_page,
    see_other,
)
from web.rendering import LANGUAGES

Act = Callable[[web.Request, Form], Awaitable[object]]
_PAYMENT_METHODS = ("cash", "card", "transfer", "other")
_WORDS_MAX = 300
_OPEN = frozenset({"requested", "pending", "partial", "confirmed"})


class _NotAdmitted(Declined):
    """Raised if a check-in is rejected, but staff can override the rejection by giving a reason."""


async def show_reservation(request: web.Request) -> web.Response:
    """`GET /portal/reservations/{id}`: show a reservation.

    `?part=1` returns a partial page for the drawer on the board.
    """
    return await _show(request, id_of(request))


async def _show(request: web.Request, reservation_id: str) -> web.Response:
    environment = request[ENVIRONMENT]
    detail = await environment.database.read(_read, reservation_id)
    changes, more = _read_changes(request)
    place = await environment.database.read(
        offer_places, changes, more or detail["reservation"].table_ids[1:], detail["reservation"]
    )
    is_part = "part" in request.query or "HX-Request" in request.headers
    values = {
        **faults_in_words(request),
        "detail": detail,
        "r": detail["reservation"],
        "names": await request[LIVE].database.read(staff_names),
        "isolate": isolate,
        "statuses": STATUS_WORDS,
        "clock": clock_formatter(request),
        "place": place,
        "changes": changes,
        "guest_pass": _offer_pass(request, detail["reservation"], detail["venue"]),
        "token": environment.database.tokens.new_link_secret(),
        "rejected": request.path.rpartition("/")[2] if REFUSED in request else "",
        # Staff may send the form again with a reason or a confirmation.
        "may_confirm": isinstance(request.get(REFUSED), UnusualAmount | _NotAdmitted),
        "heading": 1 if _is_own_page(request, reservation_id) else 2,
        "sees_guests": staff_of(request).may("host"),
    }
    template = f"portal/reservations/{'drawer' if is_part else 'detail'}.html"
    return portal_page(request, template, values)


def _read_changes(request: web.Request) -> tuple[dict[str, str], list[str]]:
    """Return the values of the form for changes, or of its link's query, and its tables."""
    if request.path.endswith("/change"):
        form = request[FORM]
        is_shown = REFUSED in request or form.checked("offer")
        return (form.typed(), form.all("more")) if is_shown else ({}, [])
    if request.path.endswith("/move") and REFUSED in request:  # the form asks for a confirmation
        return {"table": request[FORM].text("table")}, []
    names = ("date", "slot", "table")
    return {name: request.query[name] for name in names if name in request.query}, []


def _offer_pass(request: web.Request, reservation: Reservation, venue: Venue) -> dict[str, Any]:
    """Return how the guest can be given the pass: its link, its picture and WhatsApp messages."""
    environment = request[ENVIRONMENT]
    token = environment.keyring.access_token(reservation.id, reservation.link_generation)
    link = environment.links.access(token)
    language = request.config_dict[LANGUAGES].get(reservation.language or "fr")
    message = language.plain(
        "%(venue)s: here is your pass for %(day)s. %(link)s",
        venue=venue.name, day=language.long_date(start_date(reservation)), link=link,
    )  # fmt: skip
    numbers = [number.removeprefix("+") for number in reservation.phone_numbers]
    text = quote(message, safe="")
    return {
        "link": link,
        "picture": f"{environment.prefix}/access/{token}/pass.png",
        "messages": [f"https://wa.me/{number}?text={text}" for number in numbers or [""]],
        # After a contact was added, the pass is offered again.
        "is_offered": request.method == "POST"
        and request.path.endswith(("/amend", "/send-pass", "/new-code")),
    }


def _read(reader: Reader, reservation_id: str) -> dict[str, Any]:
    """Return a reservation with its table, history and payments.

    Raises NotFound if the id is unknown.
    """
    r, tables = get_reservation(reader, reservation_id), list_tables(reader)
    tonight = find_tonight(reader).isoformat()
    free = [table for table in tables if not is_held(reader, table.id, r.date, r.starts, r.ends)]
    return {
        "reservation": r,
        "venue": get_venue(reader),
        "table": get_seat(reader, r),
        "history": list_history(reader, reservation_id),
        "payments": list_payments(reader, reservation_id),
        "paid": sum_payments(reader, reservation_id),
        "other_bodies": count_other_bodies(reader, reservation_id),
        "is_tonight": r.date == tonight,
        "erasure_asked": find_erasure_request(reader, reservation_id),
        "names_guest": any((r.customer_name, r.customer_email, r.customer_phone, r.notes)),
        "is_open": r.status in _OPEN,
        "may_be_no_show": is_awaited(r) and has_started(reader, r),
        "minutes_late": minutes_late(reader, r) if r.date == tonight else None,
        "may_take_back": r.is_gone
        and not evening_is_over(reader, r)
        and {table.id for table in free}.issuperset(r.table_ids),
    }


def _is_own_page(request: web.Request, reservation_id: str) -> bool:
    """Return whether the reservation is shown on its own page, not in the drawer on the board.

    Requests from htmx contain the URL of the page in the header HX-Current-URL.
    """
    if "HX-Request" in request.headers:
        shown_on = urlsplit(request.headers.get("HX-Current-URL", "")).path
        return shown_on.endswith(f"/reservations/{reservation_id}")
    return "part" not in request.query


def _form(act: Act) -> FormHandler:
    """Wrap a form's action: run it, then show the reservation.

    If the action fails, the page shows the error and the entered values.
    """

    @wraps(act)
    async def handle(request: web.Request, form: Form) -> web.StreamResponse:
        try:
            await act(request, form)
        except NotFound:
            raise
        except (ApiError, Declined) as refusal:
            request[REFUSED] = refusal
        if REFUSED in request or "HX-Request" in request.headers:
            return await show_reservation(request)
        return see_other(request, f"/reservations/{id_of(request)}", "saved")

    return handle


async def seat(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/tonight/walk-in`: book a table for a party at the door, and check it in."""
    environment, slot = request[ENVIRONMENT], form.text("slot", 5)
    try:
        seated = await environment.database.write(
            seat_walk_in,
            staff_of(request),
            parse_uuid(form.text("table")) or "",
            slot if is_slot(slot) else None,
            form.integer("guests", 1, GUESTS_MAX),
            form_id=form.text("token", 64),
            over_capacity=confirms_guests(form),
        )
    except ApiError as refusal:
        request[REFUSED] = refusal
        return await show_new(request, part=form.checked("part"))
    if form.checked("part"):
        return await _show(request, seated.id)
    return see_other(request, f"/reservations/{seated.id}", "seated")


@_form
async def amend(request: web.Request, form: Form) -> None:
    """`POST …/amend`: change the number of guests, the customer's details or the notes."""
    over_capacity = confirms_guests(form)
    await _run_action(request, amend_reservation, read_guest(form), over_capacity=over_capacity)


async def change_one(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST …/change`: change date, time, tables or size, or only show what is free (`offer`)."""
    return await (show_reservation(request) if form.checked("offer") else _change(request, form))


@_form
async def _change(request: web.Request, form: Form) -> None:
    place = read_place(form)
    wanted = {
        "date": place.date, "slot": place.slot, "table_ids": place.table_ids,
        "guests": place.guests,
    }  # fmt: skip
    # By default, a partner that sends its guests emails itself also sends this one.
    notify = None if form.checked("tell") else False
    over_capacity = confirms_guests(form)
    await _run_action(
        request, change_reservation, wanted, over_capacity=over_capacity, notify=notify
    )


@_form
async def move(request: web.Request, form: Form) -> None:
    """`POST …/move`: move the reservation to a different table, to which it was dragged."""
    await _run_action(request, move_to_table, parse_uuid(form.text("table")) or "")


@_form
async def late(request: web.Request, form: Form) -> None:
    """`POST …/late`: mark the guests as late, or remove the mark."""
    await _run_action(request, mark_late, late=form.checked("late"))


@_form
async def cancel_one(request: web.Request, form: Form) -> None:
    """`POST …/cancel`: cancel the reservation, and notify the guest if `tell` is ticked."""
    await _run_action(request, cancel, notify=form.checked("tell"), words=_read_words(form))


@_form
async def decline_one(request: web.Request, form: Form) -> None:
    """`POST …/decline`: decline the request, and notify the guest if `tell` is ticked."""
    await _run_action(request, decline, notify=form.checked("tell"), words=_read_words(form))


def _read_words(form: Form) -> str | None:
    """Return the line from the venue that the email to the guest quotes, or None."""
    return form.text("words", _WORDS_MAX) or None


@_form
async def send_pass_to(request: web.Request, form: Form) -> None:
    """`POST …/send-pass`: email the guest their pass. The address may be new."""
    email, _ = read_contacts(form.needed("email", "please give an email address."), "")
    check_customer(None, email, None, "")
    await _run_action(request, send_pass, email)


@_form
async def new_code(request: web.Request, form: Form) -> None:
    """`POST …/new-code`: replace pass, links and access code, which stays with `keep_code`."""
    await _run_action(request, reissue_pass, keep_code=form.checked("keep_code"))


@_form
async def pay(request: web.Request, form: Form) -> None:
    """`POST …/payment`: record a payment, only once even if the form is sent again."""
    await _run_action(
        request,
        record_payment,
        amount=form.integer("amount", 1, AMOUNT_MAX),
        method=form.one_of("method", _PAYMENT_METHODS),
        complete=form.checked("complete"),
        sure=form.text("sure") == form.text("amount"),
    )


@_form
async def void(request: web.Request, form: Form) -> None:
    """`POST …/void`: void a payment. A reason is required."""
    reason = form.text("reason")
    if not reason:
        raise field_invalid("void_reason", "please give a reason.")
    await _run_action(request, void_payment, form.text("payment", 64), reason=reason)


@_form
async def check_in_one(request: web.Request, form: Form) -> None:
    """`POST …/check-in`: check the guests in. A reason overrides the verdict, if allowed."""
    environment = request[ENVIRONMENT]
    decided = await environment.database.write(
        check_in_by_staff,
        staff_of(request),
        id_of(request),
        form.text("token", 64) or environment.database.tokens.new_link_secret(),
        arrivals=form.integer("arrivals", 1, 255) if form.text("arrivals") else None,
        reason=form.text("reason") or None,
    )
    verdict = decided.verdict
    if COLOURS[verdict.result] != "green" and not verdict.admitted:
        declined = _NotAdmitted if verdict.result in OVERRIDABLE else Declined
        raise declined(phrase(verdict, language_of(request).code).staff, 409)


@_form
async def undo_one(request: web.Request, form: Form) -> None:
    """`POST …/undo`: undo the latest check-in. A reason is required."""
    reason, seen = form.needed("reason", "please give a reason."), _seen(form)
    await request[ENVIRONMENT].database.write(
        as_seen, id_of(request), seen, undo_by_staff, staff_of(request), reason
    )


async def _run_action(
    request: web.Request, action: Callable[..., object], *args: Any, **kwargs: Any
) -> None:
    """Run `action` on the reservation.

    Raises ChangedMeanwhile if the reservation has changed since the form was shown.
    """
    seen = _seen(request[FORM])
    await write_as_staff(request, as_seen, id_of(request), seen, action, *args, **kwargs)


def _seen(form: Form) -> int:
    """Return the version that the reservation had when the form was shown."""
    return form.integer("seen", 1, 2**31)


def form_without_fields(action: Callable[..., object]) -> FormHandler:
    """Return a handler that runs `action` on the reservation in the URL path."""

    async def act(request: web.Request, _: Form) -> None:
        await _run_action(request, action)

    return _form(act)


async def export_one(request: web.Request) -> web.Response:
    """`GET …/held.json`: download all data about the reservation's guest (law 09-08).

    Guests can download the same data from their own page.
    """
    database, reservation_id = request[ENVIRONMENT].database, id_of(request)
    held = await database.read(export_guests, [reservation_id])
    name = f"reservation-{reservation_id}.json"
    await database.write(record_audit, actor_of(request), "exported", name=name)
    headers = download_headers("application/json", name)
    body = json.dumps(held, ensure_ascii=False, indent=2).encode()
    return web.Response(body=body, headers=headers)
