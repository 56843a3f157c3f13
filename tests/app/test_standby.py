"""The standby's page, its health, and how boxes find each other on the network."""

import asyncio
import errno
import io
from contextlib import asynccontextmanager, suppress

import apsw
import pytest
from aiohttp import ClientSession, TCPConnector
from aiohttp.test_utils import TestClient, TestServer

from appliance.backup.fence import Event, Installation, Marker
from appliance.backup.recovery_key import RecoveryKey, find_recovery_key, keep_recovery_key
from appliance.backup.standby import LOST_FILE
from appliance.core.data_directory import DataDirectory
from appliance.core.network import own_addresses
from appliance.core.tokens import Tokens
from appliance.jobs.fence import FenceWatch
from tests.application import application_of
from tests.conftest import opened_box
from tests.unit.backup.making import KEY
from tests.unit.backup.test_standby import ADDRESS, World
from web import standby as server
from web.listeners import listen
from web.main import main
from web.mdns import announced, describe
from web.neighbours import browse, find_boxes
from web.standby import StandbyServer, run_until_taken_over

LIVE = Marker(Installation(1, 0, "a"), 0, ["http://192.168.1.7:8080"], [])


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


@pytest.fixture
def live(monkeypatch):
    """The venue's boxes that answer on the network."""
    found = []

    async def find_live(_standby, _host, _tokens):
        return found

    monkeypatch.setattr(server, "find_live", find_live)
    return found


@pytest.fixture
async def page(world, live):
    """A standby that has looked at the target once, and its client."""
    standby = world.standby()
    made = StandbyServer(standby, world.source.code, "127.0.0.1", Tokens(), lambda: 8080)
    async with TestClient(TestServer(made.build())) as client:
        client.standby, client.standby_server = standby, made
        await asyncio.to_thread(standby.refresh)
        yield client


async def press(page, **fields):
    async with page.post("/take-over", data=fields) as response:
        return response.status


async def test_the_page_is_in_the_readers_language_and_french_first(page):
    for header, code in (("", "fr"), ("ar", "ar"), ("en", "en")):
        async with page.get("/", headers={"Accept-Language": header}) as response:
            assert response.status == 200
            assert response.headers["Content-Language"] == code
            assert f'lang="{code}"' in await response.text()


async def test_the_page_shows_no_code_and_no_key(page, world):
    async with page.get("/") as response:
        shown = await response.text()
    assert world.source.code not in shown
    assert KEY.text not in shown
    assert world.source.target_secret not in shown


async def test_health_tells_the_age_of_the_backup_and_of_the_last_look(page, world):
    world.clock.advance(60)
    async with page.get("/health") as response:
        assert response.status == 200
        assert (await response.json())["backupAgeSeconds"] == 60
    world.clock.advance(600)
    async with page.get("/health") as response:
        assert response.status == 503


async def test_health_fails_ten_minutes_after_the_latest_backup_became_unusable(page, world):
    world.clock.advance(60)
    world.damage(world.back_up())
    for _ in range(10):
        world.clock.advance(60)
        await asyncio.to_thread(page.standby.refresh)

    async with page.get("/health") as response:
        assert response.status == 503

    world.back_up()
    await asyncio.to_thread(page.standby.refresh)
    async with page.get("/health") as response:
        assert response.status == 200


async def test_one_tap_takes_over_and_tells_the_address_of_the_other_box(page, world):
    world.report()

    fields = {"code": world.source.code, "off": "yes"}
    async with page.post("/take-over", data=fields) as response:
        assert response.status == 200
        assert ADDRESS in await response.text()

    assert world.directory.holds_a_box()
    await page.standby_server.taken_over.wait()


async def test_the_second_of_two_taps_tells_that_the_box_took_over(page, world):
    fields = {"code": world.source.code, "off": "yes"}

    taps = await asyncio.gather(press(page, **fields), press(page, **fields))

    assert taps == [200, 200]
    await page.standby_server.taken_over.wait()


async def test_the_code_may_be_typed_in_groups(page, world):
    code = world.source.code
    assert await press(page, code=f"{code[:5]} {code[5:]}", off="yes") == 200


async def test_the_code_may_be_typed_on_an_arabic_keyboard(page, world):
    arabic = world.source.code.translate({ord("0") + digit: 0x0660 + digit for digit in range(10)})
    assert await press(page, code=arabic, off="yes") == 200


async def test_without_the_code_nobody_takes_over_and_guesses_are_few(page, world):
    for wrong in ("", "0", f"{world.source.code}0", "é", "٠", "²", "१"):
        assert await press(page, code=wrong, off="yes") == 403
    while (status := await press(page, code="1", off="yes")) == 403:
        pass
    assert status == 429
    assert await press(page, code=world.source.code, off="yes") == 429
    world.clock.advance(61)
    assert not world.directory.holds_a_box()
    assert await press(page, code=world.source.code, off="yes") == 200


@pytest.mark.parametrize(
    ("kind", "form", "status"),
    [
        ("multipart/form-data; boundary=b", b"--b\r\nno header\r\n\r\n1\r\n--b--\r\n", 415),
        ("application/x-www-form-urlencoded; charset=punycode", b"code=" + b"9" * 9000, 415),
        ("application/x-www-form-urlencoded", b"code=%ff", 400),
        ("application/x-www-form-urlencoded", b"code=" + b"9" * 70_000, 413),
    ],
)
async def test_a_form_that_no_browser_sends_is_refused_with_the_page(page, kind, form, status):
    headers = {"Content-Type": kind}
    async with page.post("/take-over", data=form, headers=headers) as response:
        assert response.status == status
        assert 'role="alert"' in await response.text()


async def test_somebody_who_guesses_does_not_keep_the_owner_out(page, world):
    elsewhere = ClientSession(connector=TCPConnector(local_addr=("127.0.0.2", 0)))
    async with elsewhere as guesser:
        for _ in range(11):
            async with guesser.post(page.make_url("/take-over"), data={"code": "1"}) as response:
                status = response.status
    assert status == 429

    assert await press(page, code=world.source.code, off="yes") == 200


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left"), apsw.FullError("database or disk is full")]
)
async def test_a_take_over_for_which_the_disk_has_no_room_can_be_repeated(
    page, world, monkeypatch, error
):
    def fail(*_args, **_options):
        raise error

    with monkeypatch.context() as full:
        full.setattr("appliance.backup.standby.restore_blank", fail)
        assert await press(page, code=world.source.code, off="yes") == 409
    assert not page.standby_server.taken_over.is_set()

    assert await press(page, code=world.source.code, off="yes") == 200
    await page.standby_server.taken_over.wait()


async def test_a_restored_box_serves_even_if_nothing_more_can_be_written(page, world):
    event = Event(1000, "reservation.created", "r", 1_000)
    world.report(event)
    (world.directory.root / LOST_FILE).mkdir()
    (world.directory.root / "standby.json").unlink()

    fields = {"code": world.source.code, "off": "yes"}
    async with page.post("/take-over", data=fields) as response:
        assert response.status == 200
        assert event.id in await response.text()
    await page.standby_server.taken_over.wait()


async def test_the_page_asks_whether_the_other_box_is_off(page, world):
    world.report()

    async with page.post("/take-over", data={"code": world.source.code}) as response:
        assert response.status == 409
        assert 'name="off"' in await response.text()
    assert not world.directory.holds_a_box()


async def test_a_box_that_answers_cannot_be_replaced_by_a_tap(page, world, live):
    live.append(LIVE)

    async with page.post("/take-over", data={"code": world.source.code, "off": "yes"}) as response:
        assert response.status == 409
        assert 'name="off"' not in await response.text()
    assert not world.directory.holds_a_box()


def test_a_standby_that_is_set_up_again_asks_for_the_key_again(world, monkeypatch):
    new = RecoveryKey(bytes(range(32)))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{new.text}\n"))
    argv = ["standby", "--from", "s3://bucket/riad", "--host", "192.0.2.1"]  # not this machine's

    assert main([*argv, "--data", str(world.directory.root)], {}) == 1

    assert find_recovery_key(world.directory) == new


async def test_idle_connections_make_room_for_the_owner(world, live, monkeypatch):
    monkeypatch.setattr(server, "affordable_connections", lambda: 4)
    standby = world.standby()
    made = StandbyServer(standby, world.source.code, "127.0.0.1", Tokens(), lambda: 8080)
    with listen("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(run_until_taken_over(made, standby, listener, {}))
        listener.listen()
        place = listener.getsockname()
        idle = [await asyncio.open_connection(*place) for _ in range(4)]
        idle.append(await asyncio.open_connection(*place, local_addr=("127.0.0.2", 0)))
        async with asyncio.timeout(5):
            with suppress(ConnectionResetError):
                assert await idle[0][0].read() == b"", "the oldest is closed for another address"
        for _, writer in idle:
            writer.close()
        made.taken_over.set()
        assert await serving


@pytest.fixture
def patient(monkeypatch):
    """Wait for an answer however slow this machine is."""
    monkeypatch.setattr("web.neighbours._ANSWER_SECONDS", 60.0)


@asynccontextmanager
async def a_box(folder, clock, settings):
    """Yield a serving box by its base URL."""
    folder.mkdir(exist_ok=True)
    keep_recovery_key(DataDirectory(folder), KEY)

    async def look(_key, _own):
        return []

    async with opened_box(folder, clock, settings) as box:
        watch = FenceWatch(box, look, print)
        app = application_of(box, fence=watch)
        async with TestServer(app) as running:
            yield str(running.make_url("")).rstrip("/")


async def test_a_box_answers_another_that_has_its_key(tmp_path, clock, settings, patient):
    async with a_box(tmp_path / "one", clock, settings) as url:
        [found] = await find_boxes(KEY, [url, url], Tokens())
        assert found.addresses == [url]
        own = found.installation

        assert await find_boxes(KEY, [url], Tokens(), own) == [], "that is the box itself"
        assert await find_boxes(RecoveryKey(bytes(32)), [url], Tokens()) == []


async def test_what_is_no_box_is_no_other_box(tmp_path, clock, settings, unused_tcp_port):
    async with a_box(tmp_path / "one", clock, settings) as url:
        addresses = [f"{url}/nothing", f"http://127.0.0.1:{unused_tcp_port}", "http://[", ""]
        assert await find_boxes(KEY, addresses, Tokens()) == []


async def test_of_a_flood_of_announced_addresses_few_are_asked(unused_tcp_port_factory):
    asked = []

    async def hold(reader, _writer):
        asked.append(None)
        await reader.read()

    async with await asyncio.start_server(hold, "127.0.0.1", port := unused_tcp_port_factory()):
        await find_boxes(KEY, [f"http://127.0.0.1:{port}/{n}" for n in range(2000)], Tokens())
    assert 0 < len(asked) <= 100


async def test_an_announced_box_is_found_by_its_name(tmp_path, clock, settings):
    [address, *_] = [text for text in own_addresses() if ":" not in text]
    info = describe("riad-fence", "Riad Fence", [address], 8099, tls=False)
    async with announced(info, [address]):
        assert f"http://{address}:8099" in await browse("riad-fence", "0.0.0.0")  # noqa: S104
        assert await browse("riad-other", "0.0.0.0") == []  # noqa: S104
