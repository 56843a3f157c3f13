"""The link goes on for as long as the bridge runs, whatever happens to one round of it."""

import sqlite3

import pytest


@pytest.mark.parametrize("what", ["forget_snapshot", "list_open"])
async def test_a_disk_that_fails_for_a_moment_ends_no_link(bridge, door, monkeypatch, what):
    assert await bridge.reach()
    spool, is_sound = bridge.desk.spool, getattr(bridge.desk.spool, what)

    async def fail(*_args):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(spool, what, fail)
    [(before,)] = await door.rows("SELECT revoked_at FROM terminal WHERE revoked_at IS NULL")
    await door.environment.database.write(_revoke_all, 1)
    assert not await bridge.reach()
    monkeypatch.setattr(spool, what, is_sound)

    assert not await bridge.reach()
    assert bridge.desk.revoked
    assert await spool.find_snapshot() is None
    await door.environment.database.write(_revoke_all, before)
    assert await bridge.reach()


def _revoke_all(tx, at):
    tx.execute("UPDATE terminal SET revoked_at = :at", {"at": at})
