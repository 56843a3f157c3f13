"""Erase a guest of a running box: its files and its next backup contain none of their data.

Before that, the delivery log and the outbox are filled with it: the partner's server and the mail
server repeat the guest's name and address in their answers.
"""

import asyncio
import io
import json
import tarfile

import pyrage
import pytest
from aiohttp import web

from appliance.backup.recovery_key import find_recovery_key
from appliance.core.data_directory import DataDirectory
from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.journeys.partner_side import calling
from tests.unit.email.mail_servers import Handler, smtp_server
from tests.waiting import until

GUEST = {
    "name": "Zqxanthe Wvuillermoz",
    "email": "zqxanthe@canary.example",
    "phone": "+212 699 424 242",
}
NOTES = "sans zqxsafran"
TRACES = (b"zqxanthe", b"wvuillermoz", b"canary.example", b"699 424 242", b"699424242",
          b"zqxsafran")  # fmt: skip
KEPT = {b"zqxanthe", b"wvuillermoz", b"canary.example", b"699 424 242", b"zqxsafran"}


def traces_in(data):
    return {trace for trace in TRACES if trace in data.lower()}


def traces_below(folder):
    """Return which traces are in which files; encrypted backups are read as they are."""
    return {
        (str(path.relative_to(folder)), trace)
        for path in folder.rglob("*")
        if path.is_file()
        for trace in traces_in(path.read_bytes())
    }


def opened(backup, key):
    """Return the decrypted contents of a backup."""
    return pyrage.decrypt(backup.read_bytes(), [key.identity])


def back_up(data):
    """Make a backup like the owner; return its path."""
    shelf = data / "backups"
    before = set(shelf.glob("*.tar.age"))
    venuebox("backup", data=data)
    [made] = set(shelf.glob("*.tar.age")) - before
    return made


class Gossip(Handler):
    """Refuse recipients, repeating their name in the answer."""

    async def handle_RCPT(self, _server, _session, _envelope, address, _options):  # noqa: N802
        return f"450 4.2.1 {address} ({GUEST['name']}) is not at home"


async def tell_all(request):
    """Answer with an error that repeats the request."""
    told = await request.json()
    return web.json_response({"sorry": GUEST, "notes": NOTES, "of": told}, status=500)


@pytest.fixture
async def gossips(aiohttp_server):
    """Run a mail server and a receiver that repeat requests; yield settings and URL."""
    app = web.Application()
    app.router.add_post("/hook", tell_all)
    receiver = await aiohttp_server(app)
    async with smtp_server(Gossip()) as (port, _):
        yield (
            {
                "VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": f"127.0.0.1:{receiver.port}",
                "VENUEBOX_WEBHOOKS_ALLOW_HTTP": "true",
                "VENUEBOX_MAIL_HOST": "127.0.0.1",
                "VENUEBOX_MAIL_PORT": str(port),
                "VENUEBOX_MAIL_SECURITY": "none",
                "VENUEBOX_MAIL_SENDER": "tables@riad.example",
            },
            f"http://127.0.0.1:{receiver.port}/hook",
        )


async def live_through(partner, door, hook):
    """Make a booking, deliver its events and email, and search the guest at the door."""
    await partner.must(201, "POST", "/v1/webhooks", {"url": hook})
    table = (await partner.must(200, "GET", "/v1/venue"))["tables"][0]
    evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
    wish = {"tableId": table["id"], "date": evening, "guests": 2, "customer": GUEST,
            "notes": NOTES, "idempotencyKey": "one"}  # fmt: skip
    booked = await partner.must(201, "POST", "/v1/reservations", wish)
    assert booked["notifications"]["email"] == "failed"
    for code in (GUEST["name"], booked["accessCode"], booked["guestAccessUrl"]):
        scan = {"scanId": f"scan-{len(code)}", "code": code}
        await door.must(200, "POST", "/terminal/v1/scans", scan)


async def test_byte_by_byte_nothing_of_an_erased_guest_is_in_the_box_or_its_next_backup(
    tmp_path, gossips
):
    settings, hook = gossips
    founded = found_box(tmp_path)
    data, log = founded.data, tmp_path / "box.log"
    box = BoxProcess(data, log=log, settings=settings)
    with box:
        async with calling(box, founded, "live") as (partner, door):
            await live_through(partner, door, hook)
            await until(lambda: b"sorry" in b"".join(f.read_bytes() for f in data.glob("live.db*")))
        before = await asyncio.to_thread(back_up, data)
        key = find_recovery_key(DataDirectory(data))
        assert traces_in(opened(before, key)) >= KEPT, "what is there can be found"
        assert {trace for _, trace in traces_below(data)} >= KEPT

        who = ("--environment", "live", "--email", GUEST["email"])
        erased = await asyncio.to_thread(venuebox, "guest", "erase", *who, "--json", data=data)
        assert len(json.loads(erased)["erased"]) == 1
        await until(lambda: not traces_below(data))
        after = await asyncio.to_thread(back_up, data)
        box.stop()

    content = opened(after, key)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert {"live.db", "test.db"} <= {name.rpartition("/")[2] for name in archive.getnames()}
    assert traces_in(content) == set()
    assert traces_in(after.read_bytes()) == set()
    assert traces_below(data) == set()
    assert traces_in(log.read_bytes() + "\n".join(box.lines).encode()) == set()
