"""Concurrent partners and terminals with seeded random requests, and their common history."""

import asyncio
import random
from datetime import date, timedelta

import aiohttp

from tests.promises.checker import Call

WORKERS = 8
LOST = (aiohttp.ClientError, TimeoutError, ConnectionError)
PARTY = 2


class Load:
    """Mixed load on one environment, until it is stopped or the box dies."""

    def __init__(self, history, receiver, seed):
        self.history = history
        self.receiver = receiver
        self._seed = seed
        self._numbers = iter(range(10**9))
        self._rounds = 0
        self._stopping = False
        self._tables = []
        self._evening = None
        self._links = {}  # reservation id -> link of a guest of tonight

    async def prepare(self, partner, door):
        """Read the venue, and register two endpoints: one for all events, one for check-ins."""
        self._tables = [t["id"] for t in (await partner.must(200, "GET", "/v1/venue"))["tables"]]
        evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
        self._evening = date.fromisoformat(evening)
        for name, events in (("all", {}), ("arrivals", {"events": ["reservation.checked_in"]})):
            body = {"url": self.receiver.url(name), **events}
            endpoint = await partner.must(201, "POST", "/v1/webhooks", body)
            self.receiver.secrets[name] = endpoint["secret"]
            self.history.endpoints[endpoint["id"]] = endpoint["events"]

    async def run(self, partner, door):
        """Send requests until `stop`, or until the box no longer answers."""
        self._stopping = False
        self._rounds += 1
        draws = [random.Random(f"{self._seed}.{self._rounds}.{n}") for n in range(WORKERS)]
        await asyncio.gather(*(self._work(draw, partner, door) for draw in draws))

    def stop(self):
        """Stop after the current requests."""
        self._stopping = True

    async def ask_again(self, partner, door, most=40):
        """Repeat unanswered requests, and a sample of answered ones, unchanged."""
        history, draw = self.history, random.Random(f"{self._seed}.{self._rounds}")
        for key in again(history.bookings, draw, most):
            await self._book(partner, key)
        for key in again(history.changes, draw, most // 4):
            await self._change(partner, key)
        for reservation_id in again(history.cancels, draw, most // 4):
            await self._cancel(partner, reservation_id)
        for scan_id in again(history.scans, draw, most // 4):
            await self._scan(door, scan_id)

    async def _work(self, draw, partner, door):
        history = self.history
        while not self._stopping:
            what = draw.random()
            if what < 0.08 and history.bookings:
                done = await self._book(partner, draw.choice(list(history.bookings)))
            elif what < 0.20 and self._links:
                done = await self._cancel(partner, draw.choice(list(self._links)))
            elif what < 0.34 and self._links:
                done = await self._change(partner, self._new_change(draw))
            elif what < 0.38:
                done = await self._hold(partner, draw)
            elif what < 0.55 and self._links:
                done = await self._scan(door, self._new_scan(draw))
            else:
                done = await self._book(partner, self._new_booking(draw))
            if not done:
                return

    def _new_booking(self, draw):
        key = f"{self._seed}-{next(self._numbers)}"
        body = {
            "tableId": draw.choice(self._tables),
            "date": str(self._evening + timedelta(days=draw.choice((0, 0, 0, 1, 2, 3)))),
            "slot": draw.choice(("19:30", "22:00", None)),
            "guests": PARTY,
            "customer": {"name": "Salma Bennani", "phone": "+212 600 000 001"},
            "idempotencyKey": key,
            "notifyCustomer": False,
        }
        if draw.random() < 0.2:  # a group
            other = draw.choice([id_ for id_ in self._tables if id_ != body["tableId"]])
            body |= {"additionalTableIds": [other], "guests": 2 * PARTY}
        request = {name: value for name, value in body.items() if value is not None}
        self.history.bookings[key] = Call(request)
        return key

    def _new_change(self, draw):
        key, more = f"{self._seed}-{next(self._numbers)}", []
        first = draw.choice(self._tables)
        if draw.random() < 0.3:
            more = [draw.choice([id_ for id_ in self._tables if id_ != first])]
        self.history.changes[key] = Call({
            "reservationId": draw.choice(list(self._links)), "tableId": first,
            "additionalTableIds": more, "date": str(self._evening),
            "slot": draw.choice(("19:30", "22:00", None)), "guests": PARTY * (1 + len(more)),
        })  # fmt: skip
        return key

    def _new_scan(self, draw):
        scan_id = f"{self._seed}-{next(self._numbers)}"
        reservation_id = draw.choice(list(self._links))
        self.history.scans[scan_id] = Call(
            {"reservationId": reservation_id, "code": self._links[reservation_id]}
        )
        return scan_id

    async def _book(self, partner, key):
        call = self.history.bookings[key]
        done = await send(call, partner, "POST", "/v1/reservations", call.request)
        if done and call.granted and call.request["date"] == str(self._evening):
            result = call.granted[0]
            self._links[result["serviceReservationId"]] = result["guestAccessUrl"]
        return done

    async def _cancel(self, partner, reservation_id):
        call = self.history.cancels.setdefault(reservation_id, Call({}))
        return await send(call, partner, "DELETE", f"/v1/reservations/{reservation_id}")

    async def _change(self, partner, key):
        call = self.history.changes[key]
        body = call.request | {"idempotencyKey": key}
        path = f"/v1/reservations/{body.pop('reservationId')}"
        return await send(call, partner, "PATCH", path, body)

    async def _hold(self, partner, draw):
        """Hold two tables for a second without booking them."""
        tables, slot = draw.sample(self._tables, 2), draw.choice(("19:30", "22:00"))
        body = {"tableIds": tables, "date": str(self._evening), "slot": slot,
                "guests": 2 * PARTY, "seconds": 1}  # fmt: skip
        return await send(Call(body), partner, "POST", "/v1/holds", body)

    async def _scan(self, door, scan_id):
        call = self.history.scans[scan_id]
        body = {"scanId": scan_id, "code": call.request["code"]}
        return await send(call, door, "POST", "/terminal/v1/scans", body)


async def send(call, caller, method, path, body=None):
    """Send a call; return whether it was answered. Until then it counts as lost."""
    call.lost += 1
    try:
        answer = await caller(method, path, body)
    except LOST:
        return False
    call.lost -= 1
    call.answers.append(answer)
    return True


def again(calls, draw, most):
    """Return the unanswered calls and a sample of the answered ones."""
    lost = [name for name, call in calls.items() if not call.answers]
    rest = [name for name, call in calls.items() if call.answers]
    return lost + draw.sample(rest, min(most, len(rest)))
