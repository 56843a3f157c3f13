"""What a booking program does when the road to the box is bad."""

import json
import uuid
from dataclasses import replace

from tests.journeys.roads import rough_road, torn_road


def check_rough_road(partner, *program):
    """The answer is lost, then the house is busy: the same request goes out until it is told."""
    _check_road(partner, rough_road, program)


def check_torn_road(partner, *program):
    """Half an answer is none, nor is a proxy's page: the same request goes out until it is told."""
    _check_road(partner, torn_road, program)


def _check_road(partner, road, program):
    reference = f"road-{uuid.uuid4()}"
    with road(partner.url) as (address, bookings):
        done = replace(partner, url=address).book(*program, reference=reference)
    assert done.returncode == 0, done.stderr
    booked = json.loads(done.stdout)

    mine = [item["id"] for item in partner.reservations(reference)]
    assert mine == [booked["serviceReservationId"]]
    assert len(bookings) == 3
    assert len(set(bookings)) == 1
    partner.cancel(reference)
