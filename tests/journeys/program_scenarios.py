"""Scenarios that every booking program of the guide must pass, in any language."""

import json
import os
import signal
import subprocess
import uuid
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.journeys.partner_programs import eventually, wish
from tests.journeys.roads import dead_end, spoiling_road, watched_road


@contextmanager
def _reference(partner):
    """Yield a new reference; at the end cancel all bookings that start with it."""
    reference = f"again/{uuid.uuid4()}"
    try:
        yield reference
    finally:
        partner.cancel(reference)


def _killed(partner, *program, reference, arrives):
    """Kill the program while it waits for the answer; return what it sent."""
    with dead_end(partner.url, arrives=arrives) as (address, bookings):
        process = subprocess.Popen(
            [str(word) for word in (*program, *wish(reference))],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=partner.folder,
            env=replace(partner, url=address).environ(), start_new_session=True,
        )  # fmt: skip
        try:
            return eventually(lambda: list(bookings))[0]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _twice(partner, *program, reference):
    """Run the program twice; return both outputs and the requests."""
    with watched_road(partner.url) as (address, passed):
        runs = [replace(partner, url=address).book(*program, reference=reference) for _ in "12"]
    assert [done.returncode for done in runs] == [0, 0], [done.stderr for done in runs]
    return [json.loads(done.stdout) for done in runs], passed


def check_booking(partner, *program):
    """Check a booking program in all scenarios; cancel its reservations."""
    reference = f"book-{uuid.uuid4()}"
    first = partner.book(*program, reference=reference)
    again = partner.book(*program, reference=reference)
    assert first.returncode == 0, first.stderr
    booked = json.loads(first.stdout)
    assert booked["status"] == "confirmed"
    assert json.loads(again.stdout) == booked, again.stderr

    other = partner.book(*program, reference=f"{reference}-2")
    assert json.loads(other.stdout)["serviceReservationId"] != booked["serviceReservationId"]

    partner.cancel(f"{reference}-2")
    cancelled = partner.book(*program, reference=f"{reference}-2")
    assert cancelled.returncode != 0, "the program says that a cancelled booking holds a table"
    assert partner.book(*program, reference=f"{reference}-6").returncode == 0

    partner.book(*program, reference=f"{reference}-3")
    partner.book(*program, reference=f"{reference}-4")
    full = partner.book(*program, reference=f"{reference}-5")
    assert full.returncode != 0
    assert "no table for 2" in full.stderr

    assert sorted(item["externalRef"] for item in partner.reservations(reference)) == [
        reference, *(f"{reference}-{number}" for number in (2, 3, 4, 6)),
    ]  # fmt: skip
    partner.cancel(reference)


def check_refusal(partner, *program):
    """Check that a refusal that is not about the table ends the program with the code."""
    refused = partner.book(*program, slot="19:31", reference=f"no-{uuid.uuid4()}")
    assert refused.returncode != 0
    assert "INVALID_SLOT" in refused.stderr + refused.stdout


def check_road(*spoilers):
    """Check that the program repeats the same request while answers are lost or damaged."""

    def check(partner, *program):
        with (
            _reference(partner) as reference,
            spoiling_road(partner.url, spoilers) as (address, bookings),
        ):
            done = replace(partner, url=address).book(*program, reference=reference)
            assert done.returncode == 0, done.stderr

            mine = [item["id"] for item in partner.reservations(reference)]
            assert mine == [json.loads(done.stdout)["serviceReservationId"]]
            assert len(bookings) == len(spoilers) + 1
            assert len(set(bookings)) == 1

    return check


def check_restart(partner, *program):
    """Check that a program killed after the booking repeats only the same request."""
    with _reference(partner) as reference:
        asked = _killed(partner, *program, reference=reference, arrives=True)
        told, passed = _twice(partner, *program, reference=reference)

        [mine] = partner.reservations(reference)
        assert [one["serviceReservationId"] for one in told] == [mine["id"]] * 2
        assert [(one.method, one.body, one.status) for one in passed] == [("POST", asked, 200)] * 2
        assert not any("Idempotency-Body-Mismatch" in one.headers for one in passed)


def check_restart_too_late(partner, *program):
    """Check that a program killed before the booking then books another table once."""
    with _reference(partner) as reference:
        asked = _killed(partner, *program, reference=reference, arrives=False)
        other = f"{reference}-2"
        faster = json.loads(asked) | {"externalRef": other, "idempotencyKey": other}
        assert partner.call("POST", "/v1/reservations", faster)[0] == 201
        told, passed = _twice(partner, *program, reference=reference)

        refused, booked, again = (one for one in passed if one.method == "POST")
        assert (refused.body, refused.status) == (asked, 409)
        assert (booked.status, again.status, again.body) == (201, 200, booked.body)
        assert passed[0] == refused
        assert told[0] == told[1]
        assert len(partner.reservations(reference)) == 2


def check_restart_with_a_wrong_key(partner, *program):
    """Check that the stored request is kept after a rejected API key."""
    with _reference(partner) as reference:
        asked = _killed(partner, *program, reference=reference, arrives=True)
        refused = replace(partner, key="svc_test_wrong").book(*program, reference=reference)
        assert "UNAUTHORIZED" in refused.stderr
        _, passed = _twice(partner, *program, reference=reference)

        assert [(one.body, one.status) for one in passed] == [(asked, 200)] * 2


def check_correction(partner, *program):
    """Check that after a final refusal a corrected request is sent."""
    with _reference(partner) as reference:
        refused = partner.book(*program, phone="none", reference=reference)
        assert refused.returncode != 0
        assert "VALIDATION_ERROR" in refused.stderr

        assert partner.book(*program, reference=reference).returncode == 0
        assert len(partner.reservations(reference)) == 1


SCENARIOS = {
    "books once and moves on to a free table": check_booking,
    "the answer is lost, then the box is busy": check_road("lost", "busy"),
    "half an answer arrives, then a proxy's page": check_road("half", "proxy"),
    "killed after it was booked": check_restart,
    "killed before it was booked": check_restart_too_late,
    "starts again with a wrong key": check_restart_with_a_wrong_key,
    "starts again with a correction": check_correction,
    "is refused": check_refusal,
}
scenarios = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
