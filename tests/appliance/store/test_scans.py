"""The door log is one chain: what is taken out of it, put in or changed is noticed."""

import asyncio

import pytest

from appliance.actions.check_in import check_in
from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.undo_check_in import undo_check_in
from appliance.model.scan import Reading, Scan
from appliance.store.scans import find_broken_link
from appliance.store.terminals import get_terminal
from tests.appliance.arrivals import add_reservation


@pytest.fixture
async def log(box):
    """A log of five rows: three admissions, a refusal and an undo."""

    def fill(tx):
        terminal = get_terminal(tx, issue_terminal(tx, "Porte 1")[0])
        guest = add_reservation(tx, guests=9)
        for n in range(3):
            scan = Scan(f"scan-{n}", Reading("list", (guest.id,)), arrivals=2)
            check_in(tx, terminal, scan, 120)
        refused = Reading("other", refused="unknown_code", read_hash=bytes(32))
        check_in(tx, terminal, Scan("refused", refused, device_at=5), 120)
        undo_check_in(tx, terminal, "scan-1", "Salma est ressortie")

    await box.live.database.write(fill)
    return box.live.database


SLIPPED_IN = """INSERT INTO scan (seq, scan_id, terminal_id, at, kind, result, admitted, verdict,
        hash)
    SELECT 6, 'forged', terminal_id, at, kind, result, admitted, verdict, hash
    FROM scan WHERE seq = 5"""


@pytest.mark.parametrize(
    ("change", "broken"),
    [("UPDATE scan SET result = 'party_added' WHERE seq = 1", 1),
     ("UPDATE scan SET admitted = 1 WHERE seq = 2", 2),
     ("UPDATE scan SET at = at + 1 WHERE seq = 3", 3),
     ("UPDATE scan SET device_at = NULL WHERE seq = 4", 4),
     ("UPDATE scan SET read_hash = NULL WHERE seq = 4", 4),
     ("UPDATE scan SET undoes = 1 WHERE seq = 5", 5),
     ("UPDATE scan SET reservation_id = NULL WHERE seq = 2", 2),
     ("UPDATE scan SET scan_id = 'other' WHERE seq = 2", 2),
     ("UPDATE scan SET staff_id = 'somebody' WHERE seq = 1", 1),
     ("UPDATE scan SET hash = randomblob(32) WHERE seq = 5", 5),
     ("DELETE FROM scan WHERE seq = 3", 4), ("UPDATE scan SET seq = 9 WHERE seq = 5", 9),
     (SLIPPED_IN, 6)],
)  # fmt: skip
async def test_a_change_to_the_log_is_found_at_its_row(log, change, broken):
    assert await log.read(find_broken_link) is None

    await log.write(lambda tx: tx.execute(change))

    assert await log.read(find_broken_link) == broken


async def test_erasing_what_is_personal_keeps_the_log_whole(log):
    change = "UPDATE scan SET reason = NULL, verdict = '{}'"
    await log.write(lambda tx: tx.execute(change))

    assert await log.read(find_broken_link) is None
    rows = await log.read(lambda reader: list(reader.rows("SELECT * FROM scan")))
    assert "Salma" not in str(rows)


async def test_a_log_whose_oldest_rows_were_removed_is_whole_from_there(log):
    await log.write(lambda tx: tx.execute("DELETE FROM scan WHERE seq <= 2"))

    assert await log.read(find_broken_link) is None

    await log.write(lambda tx: tx.execute("UPDATE scan SET admitted = 7 WHERE seq = 4"))

    assert await log.read(find_broken_link) == 4


async def test_the_chain_holds_when_many_terminals_scan_at_once(box):
    def add(tx):
        terminals = [get_terminal(tx, issue_terminal(tx, f"Porte {n}")[0]) for n in range(5)]
        return terminals, add_reservation(tx, guests=100)

    terminals, guest = await box.live.database.write(add)
    reading = Reading("list", (guest.id,))
    await asyncio.gather(
        *(
            box.live.database.write(
                check_in, terminals[n % 5], Scan(f"scan-{n}", reading, arrivals=1), 120
            )
            for n in range(100)
        )
    )

    assert await box.live.database.read(find_broken_link) is None
    total = await box.live.database.read(lambda reader: reader.value("SELECT count(*) FROM scan"))
    assert total == 100


async def test_a_check_in_can_be_undone_only_once_even_if_the_code_forgot(log):
    def undo_again(tx):
        tx.execute("UPDATE scan SET undoes = 2 WHERE seq = 4")

    with pytest.raises(Exception, match=r"scan\.undoes"):
        await log.write(undo_again)
