"""A door log of twelve scans, exported, and what there is to check it with."""

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.actions.check_in import check_in
from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.undo_check_in import undo_check_in
from appliance.door_log.export import Exported, Request, write_export
from appliance.door_log.verification import Checked, check_file, statement_file
from appliance.model.scan import Reading, Scan
from appliance.store.scan_log import list_log_keys, list_scans, list_types, measure_stretch
from appliance.store.signing_keys import get_signing_key
from appliance.store.terminals import get_terminal
from appliance.store.venue import get_venue
from tests.appliance.arrivals import add_reservation
from tests.appliance.door_log.tampering import Lines


def fill(tx):
    """Twelve scans: ten ladies of one party, a refusal and an undo."""
    terminal = get_terminal(tx, issue_terminal(tx, "Porte, «nord»")[0])
    guest = add_reservation(tx, guests=20, customer_name="=Salma Idrissi", access_code="SVC-7K2M")
    for n in range(10):
        scan = Scan(f"-scan-{n}", Reading("list", (guest.id,)), arrivals=1, device_at=tx.now + n)
        check_in(tx, terminal, scan, 120)
    refused = Reading("other", refused="unknown_code", read_hash=bytes(32))
    check_in(tx, terminal, Scan("refused", refused, device_at=10**17), 120)
    undo_check_in(tx, terminal, "-scan-1", "@Salma\r\nest ressortie")


@dataclass
class Log:
    """The log of a box, its exports and their check."""

    box: object
    folder: Path

    async def export(self, kind, *, since=None, until=None, now="2026-11-22T09:00:00.000Z"):
        """Write an export; its path."""

        def write(reader) -> tuple[bytes, Exported]:
            venue = get_venue(reader)
            stretch = measure_stretch(reader, since, until)
            request = Request(kind, "live", venue, reader.zones.zone(venue.time_zone),
                              list_types(reader), (None, None), stretch, now)  # fmt: skip
            scans = list_scans(reader, stretch.first - 1, stretch.last) if stretch else []
            buffer = io.BytesIO()
            private_key = get_signing_key(reader, self.box.live.keyring)[1]
            return write_export(request, scans, private_key, buffer.write), buffer.getvalue()

        exported, content = await self.box.live.database.read(write)
        path = self.folder / f"log-{now[11:13]}.{kind}"
        path.write_bytes(content)
        if kind == "csv":
            statement_file(path).write_text(exported.statement)
        return path

    async def change(self, sql):
        """Reach past the code into the table."""
        await self.box.live.database.write(lambda tx: tx.execute(sql))

    async def check(self, path: Path) -> Checked:
        """Check a file with the keys of the box."""
        keys = await self.box.live.database.read(list_log_keys)
        return check_file(path, lambda _: keys)


@pytest.fixture
async def log(box, tmp_path) -> Log:
    await box.live.database.write(fill)
    return Log(box, tmp_path)


@pytest.fixture(params=["jsonl", "csv"])
def kind(request):
    return request.param


@pytest.fixture
async def lines(log, kind) -> Lines:
    """The lines of an export, to be tampered with."""
    return Lines(await log.export(kind), kind)
