"""One reservation as staff see it: everything about it, and what may be done with it now."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import urlsplit

from aiohttp import web

from appliance.errors import NotFound
from appliance.model.booking import parse_uuid
from appliance.model.reservation import Reservation
from appliance.model.venue import Table, Venue
from appliance.store.claims import find_erasure_request
from appliance.store.connection import Reader
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
from web.portal.answer import language_of, portal_page
from web.portal.context import HOUSE, SESSION
from web.portal.reservations.offers import free_tables
from web.portal.reservations.words import history_line

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
    return await detail_answer(request, reservation_id_of(request))


def reservation_id_of(request: web.Request) -> str:
    """The id in the path; NotFound when it is none."""
    reservation_id = parse_uuid(request.match_info["id"])
    if reservation_id is None:
        raise NotFound
    return reservation_id


async def detail_answer(
    request: web.Request, reservation_id: str, sent: Sent | None = None, status: int = 200
) -> web.Response:
    """The reservation as it is now; `sent` is what was declined."""
    language, environment = language_of(request), request[ENVIRONMENT]
    detail = await environment.database.read(_read, reservation_id)
    names = await request[HOUSE].database.read(staff_names)
    zone = environment.database.zones.zone(detail.venue.time_zone)

    def in_words(at: int) -> str:
        moment = datetime.fromtimestamp(at / 1000, UTC).astimezone(zone)
        return f"{language.short_date(moment.date())} {moment:%H:%M}"

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
