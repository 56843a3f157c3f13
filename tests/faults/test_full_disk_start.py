"""A start on a full disk: the door goes on from the reserve, nothing sound is called damaged."""

import asyncio
import subprocess
import time
import uuid

import pytest

from tests.faults.small_disk import Filler, unshare
from tests.journeys.box_process import PROGRAM, BoxProcess, clean_environ, found_box
from tests.journeys.partner_side import calling

MEGABYTES = 16
_FILLED = (
    'mount -t tmpfs -o size={size}m tmpfs "$0" && cp -a "$1/." "$0" && shift; '
    '{{ cat /dev/zero > "$0/filler"; }} 2>/dev/null; exec "$@"'
)


def on_full_disk(folder, content):
    """A command prefix: what follows sees `folder` as a volume with a copy of `content`, full."""
    return (*unshare(), "sh", "-c", _FILLED.format(size=MEGABYTES), str(folder), str(content))


@pytest.fixture
def small(tmp_path):
    made = tmp_path / "small"
    made.mkdir()
    return made


if unshare() is not None:  # elsewhere nobody may have such a volume

    async def test_a_box_that_starts_on_a_full_disk_opens_with_its_reserve_for_the_door(
        tmp_path, small
    ):
        founded = found_box(tmp_path)
        with BoxProcess(founded.data, log=tmp_path / "before.log") as box:
            async with calling(box, founded, "live") as (partner, door):
                tables = (await partner.must(200, "GET", "/v1/venue"))["tables"]
                evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
                booking = {"tableId": tables[0]["id"], "date": evening, "guests": 2,
                           "customer": {"name": "Salma", "phone": "+212600000001"},
                           "idempotencyKey": "before"}  # fmt: skip
                made = await partner.must(201, "POST", "/v1/reservations", booking)
            await asyncio.to_thread(box.stop)
        (founded.data / "ballast").write_bytes(bytes(4 << 20))
        later = {**booking, "tableId": tables[1]["id"], "idempotencyKey": "later"}

        wrapper = on_full_disk(small, founded.data)
        with BoxProcess(small, log=tmp_path / "box.log", wrapper=wrapper) as box:
            async with calling(box, founded, "live") as (partner, door):
                scan = {"scanId": str(uuid.uuid4()), "code": made["accessCode"]}
                verdict = await door.must(200, "POST", "/terminal/v1/scans", scan)
                status, answer = await partner("POST", "/v1/reservations", later)

                assert verdict["result"] == "checked_in"
                assert (status, answer["code"]) == (503, "UNAVAILABLE")

                await asyncio.to_thread(Filler(box.pid, small).free)
                deadline = time.monotonic() + 60
                while (await partner("POST", "/v1/reservations", later))[0] == 503:
                    assert time.monotonic() < deadline, "it did not recover by itself"
                    await asyncio.sleep(0.2)

    def test_without_a_reserve_it_asks_for_room_and_calls_nothing_damaged(tmp_path, small):
        founded = found_box(tmp_path)
        stuck = BoxProcess(
            small, log=tmp_path / "box.log", wrapper=on_full_disk(small, founded.data)
        )

        with pytest.raises(AssertionError, match="it did not become ready"):
            stuck.start()

        [said] = stuck.complaints().splitlines()
        assert said.startswith("venuebox: ")
        assert "no room" in said
        assert "make some, then" in said
        assert "restore" not in said

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (["key", "list"], "has no room left: make some"),
            (["key", "create", "--environment", "live", "--name", "P"], "has no room left"),
            (["tls", "renew"], "no room"),
            (["backup", "kit", "--html", "{small}/kit.html"], "there is no room"),
            (["backup"], "no room"),
        ],
    )
    def test_commands_on_a_full_disk_ask_for_room(tmp_path, small, argv, said):
        founded = found_box(tmp_path)

        done = run_on_full_disk(small, founded, *(word.format(small=small) for word in argv))

        assert done.returncode == 1
        [sentence] = done.stderr.splitlines()
        assert said in sentence
        assert "unexpected" not in sentence
        assert "damaged" not in sentence.replace("Nothing is damaged", "")

    def test_the_doctor_of_a_full_disk_sends_nobody_to_a_backup(tmp_path, small):
        done = run_on_full_disk(small, found_box(tmp_path), "doctor")

        findings = {
            line[6:18].strip(): line[:4] for line in done.stdout.splitlines() if line[0] != " "
        }
        assert (findings["disk"], findings["integrity"]) == ("FAIL", "FAIL")
        assert "Make room" in done.stdout
        assert "restore" not in done.stdout
        assert "could not be examined" not in done.stdout


def run_on_full_disk(small, founded, *argv):
    return subprocess.run(
        [*on_full_disk(small, founded.data), PROGRAM, *argv, "--data", str(small)],
        capture_output=True, text=True, check=False, env=clean_environ({"LC_ALL": "C.UTF-8"}),
    )  # fmt: skip
