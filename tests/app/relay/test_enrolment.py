"""How boxes join a relay: invitations, codes, keys, and what a revocation does."""

import asyncio
import json
from dataclasses import asdict, replace
from unittest.mock import Mock

import pytest

from appliance.backup.copies import CopyRecord, read_copy_record
from appliance.core.errors import OperatorError
from appliance.relay_access import Access, access_file
from tests.app.relay.relay_world import SECONDS, a_relay
from tests.app.relay.test_hello import hello_for
from web.main import main
from web.relay import commands, enrolment
from web.relay.dial import Refused, join
from web.relay.enrolment import Invitation

UNKNOWN_NAME = b"\x15\x03\x03\x00\x02\x02\x70"
A, B = "a.example", "b.example"


async def test_an_invitation_works_once_and_for_its_own_name(relay):
    invitation = relay.invite(A)
    with pytest.raises(Refused):
        await join(replace(invitation, name=B))
    assert relay.enrolments.boxes() == {}
    access = await join(invitation)

    with pytest.raises(Refused):
        await join(invitation)

    await relay.dial(access)
    assert relay.boxes.names == [A]


async def test_an_invitation_is_kept_until_the_box_is_enrolled(relay, monkeypatch):
    invitation = relay.invite(A)
    with monkeypatch.context() as full_disk:
        full_disk.setattr(enrolment, "write_json", Mock(side_effect=OSError(28, "no space left")))
        with pytest.raises(Refused):
            await join(invitation)
    assert relay.enrolments.boxes() == {}

    assert (await join(invitation)).name == A


async def test_an_address_that_is_no_host_name_is_told(relay, tmp_path):
    invitation = replace(relay.invite(A), relay=replace(relay.address, host="relay..example.com"))

    with pytest.raises(OperatorError):
        await commands.join_relay(tmp_path / "box", invitation)

    assert main(["relay", "serve", "--data", str(tmp_path), "--address", "relay..x.example"]) == 1


@pytest.mark.parametrize(
    ("target", "is_kept"), [("relay:", False), ("sftp://box@nas.example/backups", True)]
)
async def test_what_was_copied_to_another_relay_does_not_count_at_this_one(
    relay, tmp_path, target, is_kept
):
    record = CopyRecord(target, "riad-2026-11-21T190000Z.venuebox-backup", 1, 1)
    (tmp_path / "last-copy.json").write_text(json.dumps(asdict(record)))
    (tmp_path / "secrets").mkdir()

    await commands.join_relay(tmp_path, relay.invite(A))

    assert read_copy_record(tmp_path) == (record if is_kept else CopyRecord())


async def test_an_invitation_ends(relay):
    invitation = relay.invite(A, hours=1)
    relay.clock.moved += 3_600_000

    with pytest.raises(Refused):
        await join(invitation)

    assert relay.boxes.names == []


async def test_a_later_invitation_replaces_the_earlier_one_and_then_the_box(relay):
    first, second = relay.invite(A), relay.invite(A)
    with pytest.raises(Refused):
        await join(first)
    old = await join(second)
    dialled, _ = await relay.dial(old)

    await join(relay.invite(A))

    await asyncio.wait_for(dialled.wait_lost(), SECONDS)
    with pytest.raises(Refused):
        await relay.dial(old)


async def test_a_relay_with_another_host_key_is_refused(relay, tmp_path):
    access, invitation = await relay.enrol(A), relay.invite(B)
    async with a_relay(tmp_path / "relay") as impostor:  # with the same boxes and invitations
        at = replace(relay.address, port=impostor.address.port)

        for trying in (
            join(replace(invitation, relay=at)),
            relay.dial(replace(access, relay=at)),
        ):
            with pytest.raises(Refused) as refused:
                await trying
            assert refused.value.reason == "relay_other_key"

    assert list(relay.enrolments.boxes()) == [A]


async def test_a_revoked_box_is_cut_at_once(relay):
    access = await relay.enrol(A)
    dialled, _ = await relay.dial(access)

    async with relay.call() as (reader, writer):
        writer.write(hello_for(A))
        await reader.read(1)
        assert relay.enrolments.revoke(A)
        relay.boxes.reload()
        await asyncio.wait_for(dialled.wait_lost(), SECONDS)
        assert await asyncio.wait_for(reader.read(), SECONDS) is not None

    assert await relay.ask_for(A) == UNKNOWN_NAME
    with pytest.raises(Refused) as refused:
        await relay.dial(access)
    assert refused.value.reason == "relay_revoked"
    assert not relay.enrolments.revoke(A)


@pytest.mark.parametrize("cut", [slice(0, -9), slice(9, None), slice(0, 0)])
async def test_a_part_of_a_code_is_refused(relay, cut):
    invitation = relay.invite(A)
    code = invitation.encode()

    with pytest.raises(OperatorError):
        Invitation.decode(code[cut])

    assert Invitation.decode(f"  {code[:40]}\n{code[40:]} ") == invitation


@pytest.mark.parametrize("name", ["", "a", "../x.y", "a.example/", "A.example", "a..example"])
async def test_a_bad_name_is_not_invited(relay, name):
    with pytest.raises(OperatorError):
        relay.invite(name)


async def test_a_box_keeps_its_access_and_damage_to_it_is_told(relay, tmp_path):
    file = access_file(tmp_path / "box")
    file.parent.mkdir(parents=True)
    assert Access.load(file) is None
    access = await relay.enrol(A)
    access.save(file)

    assert Access.load(file) == access
    assert file.stat().st_mode & 0o077 == 0

    file.write_bytes(b"{}")
    with pytest.raises(OperatorError):
        Access.load(file)
