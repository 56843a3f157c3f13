"""`/portal/reservations/export.csv`: what the filters ask for, for a spreadsheet."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from aiohttp import web

from appliance.actions.note_security import note_security
from appliance.i18n import Language
from appliance.model.reservation import Reservation
from appliance.model.spreadsheet import BYTE_ORDER_MARK, phone_text, write_cell, write_cells
from appliance.store.connection import Reader
from appliance.store.history import sum_payments
from appliance.store.readings import find_tonight
from appliance.store.reservation_search import list_by_seq, list_found
from appliance.store.venue import get_venue, list_tables
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import HEADERS, language_of
from web.portal.guard import staff_of
from web.portal.reservations.finding import read_finding
from web.portal.reservations.words import source_word, status_word

_BATCH = 500
Line = Callable[[Reservation, int], bytes]


async def export_list(request: web.Request) -> web.StreamResponse:
    """The same reservations as the list shows, on all of its pages, in the same order."""
    language, database = language_of(request), request[ENVIRONMENT].database
    finding = read_finding(request, await database.read(find_tonight))
    seqs = await database.read(list_found, finding.wanted)
    actor = f"staff:{staff_of(request).id}"
    await database.write(note_security, actor, "exported", name="reservations.csv")
    venue, tables = await database.read(lambda r: (get_venue(r), list_tables(r)))
    zone = database.zones.zone(venue.time_zone)
    at_table = {table.id: table for table in tables}

    def line(r: Reservation, paid: int) -> bytes:
        table = at_table.get(r.table_id)
        cells = (
            r.date, r.slot, table.number if table else r.table_name, r.customer_name,
            phone_text(r.customer_phone), r.customer_email, r.guests, r.arrived,
            status_word(r.status, language), source_word(r.source, language), r.access_code,
            r.external_ref, r.notes, "VIP" if r.vip else None, paid,
            table.minimum_spend if table else None, venue.currency, told(r.created_at),
            told(r.checked_in_at), r.id,
        )  # fmt: skip
        return write_cells(map(write_cell, cells)) + b"\r\n"

    def told(at: int | None) -> str | None:
        if at is None:
            return None
        return f"{datetime.fromtimestamp(at / 1000, UTC).astimezone(zone):%Y-%m-%d %H:%M}"

    async def read(some: Sequence[int]) -> bytes:
        return b"".join([line(*found) for found in await database.read(_read, some)])

    first = BYTE_ORDER_MARK + write_cells(_columns(language)) + b"\r\n"
    return _CsvStream(first, seqs, read, f"reservations-{venue.slug}.csv")


def _columns(language: Language) -> list[str]:
    """The names of the columns, whose order is the same in every language."""
    _ = language.gettext
    return [
        _("Date"), _("Slot"), _("Table"), _("Name"), _("Phone"), _("Email"), _("Guests"),
        _("Arrived"), _("Status"), _("Source"), _("Code"), _("Reference of the partner"),
        _("Notes"), _("VIP"), _("Paid"), _("Minimum spend"), _("Currency"), _("Created"),
        _("Came in"), _("Identifier"),
    ]  # fmt: skip


def _read(reader: Reader, seqs: Sequence[int]) -> list[tuple[Reservation, int]]:
    return [(found, sum_payments(reader, found.id)) for found in list_by_seq(reader, seqs)]


class _CsvStream(web.StreamResponse):
    """A file that is read from the database while it is written."""

    def __init__(
        self,
        first: bytes,
        seqs: Sequence[int],
        read: Callable[[Sequence[int]], Awaitable[bytes]],
        name: str,
    ) -> None:
        super().__init__(
            headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
        )
        self.content_type = "text/csv"
        self.charset = "utf-8"
        self._first, self._seqs, self._read = first, seqs, read

    async def write_eof(self, data: bytes = b"") -> None:
        """Everything, some hundred lines at a time."""
        await self.write(self._first)
        for begin in range(0, len(self._seqs), _BATCH):  # cut short, it is no whole answer
            await self.write(await self._read(self._seqs[begin : begin + _BATCH]))
        await super().write_eof(data)
