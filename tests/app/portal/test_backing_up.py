"""Backups from the portal, and the recovery kit."""

import asyncio
import json
import queue
import threading
from dataclasses import asdict

from appliance.backup.catalogue import Record, write_record
from appliance.backup.copies import CopyRecord
from appliance.backup.create import Maker
from appliance.backup.recovery_key import ensure_recovery_key
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.staff.audit_log import list_audit_entries
from appliance.staff.model import set_password
from tests.app.portal.people import HASH, PASSWORD, a_person
from tests.unit.backup.making import MASTER_KEY
from tests.waiting import within

PART = "/portal/box/backup"


def with_keys(root):
    """Write the files that `venuebox init` creates and a box in memory lacks."""
    directory = DataDirectory(root)
    directory.make_folders()
    directory.master_key_file.write_bytes(MASTER_KEY)
    directory.master_key_file.chmod(0o600)


async def when_made(person):
    """Return the backup section after the backup has ended."""
    for _ in range(600):
        _, part, _ = await person.get(PART)
        if "hx-get" not in part:
            return part
        await asyncio.sleep(0.05)
    raise AssertionError("it is still being made")


def slow_backups(monkeypatch):
    """Replace Maker.make: put the Maker into the queue and stay at 25 % until the event is set."""
    begun, may_end = queue.SimpleQueue(), threading.Event()

    def make(maker, **_):
        maker.tell("prove", 1, 4)
        begun.put(maker)
        may_end.wait(120)

    monkeypatch.setattr(Maker, "make", make)
    return begun, may_end


async def test_a_manager_can_make_a_verified_backup(tmp_path, manager):
    with_keys(tmp_path)
    status, _, headers = await manager.post(PART)
    part = await when_made(manager)
    assert (status, headers["Location"]) == (303, "/portal/box?tab=backups")
    assert '<p class="note" role="status">' in part
    [made] = (tmp_path / "backups").glob("*.tar.age")
    assert str(made.parent) in part


async def test_during_a_backup_its_progress_is_shown_and_no_second_one_starts(monkeypatch, manager):
    begun, may_end = slow_backups(monkeypatch)
    await manager.post(PART)
    await asyncio.to_thread(begun.get)
    await manager.post(PART)

    part = (await manager.get(PART))[1]
    assert 'value="25"' in part
    assert 'value="25"' in (await manager.get("/portal/box?tab=backups"))[1]
    may_end.set()
    await when_made(manager)
    assert begun.empty()


async def test_a_failed_backup_is_shown_and_can_be_retried(running, tmp_path, monkeypatch, manager):
    def make(maker, **_):
        write_record(tmp_path, Record(trouble="100% full <b>"))
        raise OperatorError("100% full <b>")

    monkeypatch.setattr(Maker, "make", make)

    await manager.post(PART)
    part = await when_made(manager)

    assert "100% full &lt;b&gt;" in part
    assert f'action="{PART}"' in part


async def test_the_page_shows_the_copies_at_the_target_and_why_they_fail(
    running, tmp_path, manager
):
    record = CopyRecord("", "a", at=running.clock.now(), trouble="no <b>")
    (tmp_path / "last-copy.json").write_text(json.dumps(asdict(record)))
    write_record(tmp_path, Record(made_at=running.clock.now()))

    part = (await manager.get(PART))[1]

    assert "no &lt;b&gt;" in part


async def test_stopping_the_box_does_not_wait_for_a_backup(running, monkeypatch, manager):
    begun, may_end = slow_backups(monkeypatch)
    await manager.post(PART)
    await asyncio.to_thread(begun.get)

    try:
        async with within("the end of the box"):  # the backup takes two minutes
            await running.client.close()
    finally:
        may_end.set()


async def test_the_owner_sees_the_recovery_kit_after_entering_the_password(
    running, tmp_path, owner
):
    await running.live.database.write(set_password, owner.id, HASH)
    status, sheet, headers = await owner.post("/portal/box/recovery-kit", {"password": PASSWORD})

    key = ensure_recovery_key(DataDirectory(tmp_path))
    assert status == 200
    assert all(row in sheet for row in key.rows)
    assert headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    entries = await running.live.database.read(list_audit_entries, 10, before=2**53)
    assert (entries[0].actor, entries[0].what) == (f"staff:{owner.id}", "recovery_kit_shown")


async def test_managers_and_guessed_passwords_do_not_open_the_recovery_kit(running, tmp_path):
    owner, manager = await a_person(running), await a_person(running, "manager")
    for person in (owner, manager):
        await running.live.database.write(set_password, person.id, HASH)
    rows = ensure_recovery_key(DataDirectory(tmp_path)).rows[1:]

    answers = [await manager.post("/portal/box/recovery-kit", {"password": PASSWORD})]
    answers += [await owner.post("/portal/box/recovery-kit", {"password": "x"}) for _ in range(5)]
    answers.append(await owner.post("/portal/box/recovery-kit", {"password": PASSWORD}))

    assert [status for status, _, _ in answers] == [403, 400, 400, 400, 400, 400, 429]
    assert not any(row in text for _, text, _ in answers for row in rows)
