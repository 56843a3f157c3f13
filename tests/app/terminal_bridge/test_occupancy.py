"""The number of people inside is the same at every door and in the scan log."""

import json
import random

import pytest

from tests.app.door.test_vectors import run
from tests.app.terminal_bridge.apart import a_scan, sync
from tests.conftest import set_rules

IN_THE_LOG = "SELECT coalesce(sum(admitted + moved), 0) FROM scan_log"


async def totals_of(door):
    _, evening = await door.call("GET", "/evening")
    return evening["totals"]


async def inside_of(door):
    """Return the number of people inside, after checking it against the scan log."""
    ((logged,),) = await door.rows(IN_THE_LOG)
    people = (await totals_of(door))["inside"]["people"]
    assert people == logged
    return people


async def out(door, code, **members):
    return await door.scan(code, leaving=True, **members)


async def test_an_exit_lowers_the_number_inside_and_keeps_the_first_check_in(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text)
    first = await door.now_of(guest)
    door.clock.advance(600)

    verdict = await out(door, text, arrivals=1)

    assert (verdict["result"], verdict["admitted"], verdict["moved"]) == ("went_out", 0, -1)
    assert (verdict["reservation"]["arrived"], verdict["reservation"]["out"]) == (4, 1)
    now = await door.now_of(guest)
    assert (now.arrived, now.checked_in_at) == (4, first.checked_in_at)
    assert await door.rows("SELECT type FROM event") == [("reservation.checked_in",)]
    assert (await totals_of(door))["arrived"] == {"people": 4, "reservations": 1}
    assert await inside_of(door) == 3


async def test_a_pass_scanned_again_after_an_exit_is_green_with_the_time_of_the_exit(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text)
    door.clock.advance(600)
    await out(door, text, arrivals=2)
    door.clock.advance(60)

    verdict = await door.scan(text)

    assert (verdict["result"], verdict["colour"]) == ("came_back", "green")
    assert (verdict["admitted"], verdict["moved"]) == (0, 2)
    assert verdict["reservation"]["wentOutAt"] == "2026-11-21T19:10:00.000Z"
    assert "19:10" in verdict["say"]["staff"]
    assert await inside_of(door) == 4
    assert (await door.scan(text))["result"] == "already_checked_in"


@pytest.mark.parametrize(("arrived", "people"), [(0, None), (2, 3)])
async def test_an_exit_of_a_party_that_is_not_inside_is_refused(door, arrived, people):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    if arrived:
        await door.scan(text, arrivals=arrived)

    verdict = await out(door, text, **({"arrivals": people} if people else {}))

    assert (verdict["result"], verdict["colour"], verdict["moved"]) == ("not_inside", "amber", 0)
    assert await inside_of(door) == arrived


async def test_an_exit_can_be_undone_like_an_entry(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)
    verdict = await out(door, text)

    _, undone = await door.call("POST", f"/scans/{verdict['scanId']}/undo", {})

    assert (undone["result"], undone["moved"]) == ("undone", 2)
    assert await inside_of(door) == 2
    assert (await door.now_of(guest)).checked_in_at is not None


async def test_undoing_an_old_return_counts_nobody_out_twice(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)
    await out(door, text)
    back = await door.scan(text)
    await out(door, text)

    _, undone = await door.call("POST", f"/scans/{back['scanId']}/undo", {"reason": "Parti"})

    assert (undone["result"], undone["moved"]) == ("undone", 0)
    now = await door.now_of(guest)
    assert (now.arrived, now.people_out, await inside_of(door)) == (2, 2, 0)


async def test_a_late_guest_of_a_party_that_has_left_is_not_admitted_to_the_freed_table(door):
    guest = await door.guest(guests=4)
    text = await door.pass_of(guest)
    await door.scan(text, arrivals=3)
    await door.call("POST", f"/reservations/{guest.id}/left", {})

    verdict = await door.scan(text)

    assert (verdict["result"], verdict["colour"]) == ("already_checked_in", "amber")
    assert await inside_of(door) == 0


async def test_undoing_the_entry_of_a_party_that_is_out_removes_its_exit(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    entry = await door.scan(text)
    await out(door, text)

    await door.call("POST", f"/scans/{entry['scanId']}/undo", {})

    assert await inside_of(door) == 0
    assert (await door.scan(text))["result"] == "checked_in"
    assert await inside_of(door) == 2


@pytest.mark.parametrize(
    ("people", "told"), [(18, None), (19, {"inside": 19, "capacity": 20}),
                         (20, {"inside": 20, "capacity": 20})],
)  # fmt: skip
async def test_a_nearly_full_venue_is_reported_and_refuses_nobody(door, people, told):
    await set_rules(door.environment, capacity=20)
    guest = await door.guest(guests=people)

    verdict = await door.scan(await door.pass_of(guest))

    assert (verdict["colour"], verdict["admitted"]) == ("green", people)
    assert verdict.get("occupancy") == told
    assert ("20" in verdict["say"]["staff"]) == (told is not None or people == 20)


async def test_offline_exits_count_once_even_if_they_arrive_before_the_entry(door):
    guest = await door.guest(guests=4)
    text, other = await door.pass_of(guest), await door.other()
    left = a_scan(code=text, leaving=True, shown="went_out", arrivals=3)

    for _ in range(2):
        (result,) = await sync(door, left)
        assert (result["result"], result["conflict"]) == ("went_out", None)
    (entry,) = await sync(other, a_scan(code=text, arrivals=4))

    assert (entry["result"], entry["admitted"]) == ("checked_in", 4)
    assert await door.rows("SELECT type FROM event") == [("reservation.checked_in",)]
    assert await inside_of(door) == 1


async def test_marking_a_party_as_left_counts_it_out_until_that_is_undone(door):
    guest = await door.guest(guests=3)
    await door.scan(await door.pass_of(guest))

    for _ in range(2):
        status, answer = await door.call("POST", f"/reservations/{guest.id}/left", {})
        assert (status, answer["reservation"]["gone"]) == (200, "left")
        assert await inside_of(door) == 0
        verdict = await door.scan(await door.pass_of(guest))
        assert verdict["result"] == "already_checked_in"
        _, answer = await door.call("POST", f"/reservations/{guest.id}/take-back", {})
        assert answer["reservation"]["gone"] is None
        assert await inside_of(door) == 3


async def test_a_party_admitted_twice_is_counted_once_after_the_conflict_is_corrected(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)
    other = await door.other()
    (result,) = await sync(other, a_scan(code=text))
    assert (await door.now_of(guest)).arrived == 4

    path = f"/conflicts/{result['conflict']['id']}/acknowledge"
    for _ in range(2):
        status, answer = await other.call("POST", path, {"correct": True})
        assert (status, answer["conflict"]["acknowledged"]) == (200, True)

    assert (await door.now_of(guest)).arrived == 2
    assert (await door.now_of(guest)).checked_in_at is not None
    assert await inside_of(door) == 2


async def test_undoing_both_entries_after_a_correction_takes_each_person_back_once(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    entry = await door.scan(text)
    (result,) = await sync(door, a_scan(code=text))
    path = f"/conflicts/{result['conflict']['id']}/acknowledge"
    await door.call("POST", path, {"correct": True})

    for scan_id in (entry["scanId"], result["scanId"]):
        await door.call("POST", f"/scans/{scan_id}/undo", {"reason": "Erreur"})

    assert (await door.now_of(guest)).arrived == await inside_of(door) == 0
    assert await door.rows("SELECT type FROM event") == [
        ("reservation.checked_in",), ("reservation.checkin_reverted",),
    ]  # fmt: skip


async def test_an_exit_of_a_party_admitted_twice_is_not_another_conflict(door):
    guest = await door.guest(guests=2)
    text = await door.pass_of(guest)
    await door.scan(text)
    await sync(await door.other(), a_scan(code=text))

    (result,) = await sync(door, a_scan(code=text, leaving=True, shown="went_out", arrivals=1))

    assert result["conflict"] is None
    assert await inside_of(door) == 3


ALONE = """
import { decideOffline, queueEntry } from "./src/door/offline";

export async function judge({ me, snapshot, evening }) {
  const presence = new Map();
  const queue = [];
  for (const [minute, scan] of evening) {
    const now = Date.parse(snapshot.madeAt) + minute * 60000;
    const data = { me, environment: "live", snapshot, presence, now };
    const asked = { ...scan, at: new Date(now).toISOString() };
    const verdict = await decideOffline(asked, data);
    const guest = verdict.reservation;
    if (guest && (verdict.admitted > 0 || verdict.moved !== 0)) {
      const { arrived, out, wentOutAt } = guest;
      presence.set(guest.id, { arrived, out, wentOutAt });
    }
    queue.push(queueEntry(asked, verdict, false));
  }
  return queue;
}
"""
COUNTED = """
import { listGuests } from "./src/door/offline";

export function judge(phones) {
  return phones.map(({ me, snapshot }) =>
    listGuests({ me, environment: "live", snapshot, presence: new Map(), now: 0 })
      .reduce((sum, { arrived, out }) => sum + arrived - out, snapshot.withoutTable));
}
"""
LOCAL = ("guestId", "admitted", "moved", "reached")


async def snapshot_of(door):
    _, signed = await door.call("GET", "/snapshot")
    _, me = await door.call("GET", "/me")
    return {"me": me, "snapshot": json.loads(signed["payload"])}


@pytest.mark.process
@pytest.mark.parametrize("seed", range(3))
async def test_eight_doors_of_which_two_were_offline_agree_with_each_other_and_the_scan_log(
    door, seed
):
    chance = random.Random(seed)
    parties = [
        await door.guest(date="2026-11-21", slot=slot, table=f"T{n}", guests=chance.randint(1, 6))
        for n in range(1, 4) for slot in ("19:30", "20:30")
    ]  # fmt: skip
    texts = [await door.pass_of(party) for party in parties]
    doors = [door, *[await door.other(f"Porte {n}") for n in range(2, 9)]]
    for text in chance.sample(texts, 4):
        await door.scan(text, arrivals=1)
    phone = await snapshot_of(door)

    def passage(n):
        way = {"leaving": True} if chance.random() < 0.4 else {}
        if chance.random() < 0.1:
            return {"scanId": f"s{n}", "walkIn": True, "arrivals": chance.randint(1, 3), **way}
        people = {"arrivals": chance.randint(1, 3)} if chance.random() < 0.6 else {}
        return {"scanId": f"s{n}", "code": chance.choice(texts), **people, **way}

    evening = [(n / 12, passage(n)) for n in range(120)]  # one passage every 5 s
    alone = [evening[0::8], evening[1::8]]
    queues = [run(ALONE, {**phone, "evening": mine}) for mine in alone]
    told = await inside_of(door)
    for n, (_, scan) in enumerate(evening):
        if n % 8 >= 2:
            path = "/walk-ins" if scan.get("walkIn") else "/scans"
            status, verdict = await doors[n % 8].call("POST", path, scan)
            assert status == 200, verdict
            told += verdict["admitted"] + verdict["moved"]
        if n % 12 == 11:
            door.clock.advance(60)
    for away, queue in zip(doors[:2], queues, strict=True):
        scans = [{k: v for k, v in scan.items() if k not in LOCAL} for scan in queue]
        results = await sync(away, *scans)
        assert await sync(away, *scans) == results  # as if the answer had been lost
        told += sum(result["admitted"] + result["moved"] for result in results)

    phones = [await snapshot_of(each) for each in doors]

    assert set(run(COUNTED, phones)) == {await inside_of(door)}
    assert {(await totals_of(each))["inside"]["people"] for each in doors} == {told}
