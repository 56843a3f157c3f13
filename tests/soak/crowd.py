"""Fifty partners and eight doors compete for a few tables and guests, and record a history.

Only the part of each answer that the checker (tests/promises/checker.py) reads is kept, so that a
million answers fit into memory. The few tables change after some thousand requests.
"""

import asyncio
import hashlib
import json
import random
import time
from dataclasses import dataclass, field
from datetime import timedelta

from tests.promises.checker import Call

GUESTS = 2
SLOTS = ("19:30", "22:00", None)
WINDOW = 6  # number of tables that the partners compete for at a time
OF_ONE_WINDOW = 4_000  # requests until the next tables are used
NIGHTS = 5
KNOWN = 24  # guests whom the doors know at a time
TRIES = 3
LOST = (ConnectionError, TimeoutError, OSError)


# All bookings that were only refused share this call, to save memory.
REFUSED = Call({}, [(409, {})])


@dataclass
class Crowd:
    """The partners and doors: their shared data and results. `pace` is their pause in seconds."""

    history: object
    tables: list
    evening: object
    seed: object
    pace: float = 0.0
    done: int = 0
    hung_up: int = 0
    goal: int = 10**12
    until: float = float("inf")
    tonight: list = field(default_factory=list)  # (reservation id, link) of guests to admit
    strange: list = field(default_factory=list)  # undocumented answers
    seconds: dict = field(default_factory=lambda: {"book": [], "scan": []})

    @property
    def is_over(self):
        return self.done >= self.goal or time.monotonic() >= self.until

    async def partner(self, name, wires):
        """Book and cancel with one key on two connections, sometimes on both at once."""
        draw, own, keys = random.Random(f"{self.seed} {name}"), [], []
        numbers = iter(range(10**9))
        while not self.is_over:
            chance = draw.random()
            if chance < 0.18 and own:
                await self.cancel(wires[0], own.pop(draw.randrange(len(own))))
            elif chance < 0.20 and self.tonight:  # perhaps a reservation of another partner
                await self.cancel(wires[0], draw.choice(self.tonight)[0])
            elif chance < 0.25 and keys:
                await self.book(wires[0], draw.choice(keys))
            else:
                key = f"{name}-{next(numbers)}"
                self.history.bookings[key] = Call(self.wish(draw, key))
                twice = chance > 0.97
                await asyncio.gather(*(self.book(wire, key) for wire in wires[: 1 + twice]))
                if call := self.settle(key):
                    keys.append(key)
                    own.append(call.granted[0]["serviceReservationId"])
            await asyncio.sleep(self.pace * draw.uniform(0.5, 1.5))

    def wish(self, draw, key):
        """Return a booking for one of the few tables, mostly for tonight."""
        window = self.done // OF_ONE_WINDOW * WINDOW
        table = self.tables[(window + draw.randrange(WINDOW)) % len(self.tables)]
        request = {"tableId": table, "guests": GUESTS, "idempotencyKey": key,
                   "date": str(self.evening + timedelta(days=max(0, draw.randrange(-3, NIGHTS)))),
                   "customer": {"name": "Salma Bennani", "phone": "+212 600 000 001"},
                   "notifyCustomer": False}  # fmt: skip
        slot = draw.choice(SLOTS)
        return request if slot is None else request | {"slot": slot}

    def settle(self, key):
        """Return the call if it was granted. Replace a refused call by a shared one."""
        call = self.history.bookings[key]
        if not call.may_have_been_done:
            self.history.bookings[key] = REFUSED
        return call if call.granted else None

    async def book(self, wire, key):
        call = self.history.bookings[key]
        status, body = await self.send("book", call, wire, "POST", "/v1/reservations", call.request)
        if status == 201 and call.request["date"] == str(self.evening):
            self.tonight.append((body["serviceReservationId"], body["link"]))
            del self.tonight[:-KNOWN]

    async def cancel(self, wire, reservation_id):
        call = self.history.cancels.setdefault(reservation_id, Call({}))
        await self.send("cancel", call, wire, "DELETE", f"/v1/reservations/{reservation_id}")

    async def door(self, name, wire):
        """Scan known guests repeatedly, and sometimes repeat a scan."""
        draw, numbers, last = random.Random(f"{self.seed} {name}"), iter(range(10**9)), None
        while not self.is_over:
            if last and draw.random() < 0.05:
                await self.scan(wire, last)
            elif self.tonight:
                reservation_id, link = draw.choice(self.tonight)
                last = f"{name}-{next(numbers)}"
                self.history.scans[last] = Call({"reservationId": reservation_id, "code": link})
                await self.scan(wire, last)
            await asyncio.sleep(self.pace * draw.uniform(0.5, 1.5))

    async def scan(self, wire, scan_id):
        call = self.history.scans[scan_id]
        body = {"scanId": scan_id, "code": call.request["code"]}
        await self.send("scan", call, wire, "POST", "/terminal/v1/scans", body)

    async def send(self, kind, call, wire, method, path, body=None):
        """Send a call, and again after a broken connection. Without an answer it counts as lost."""
        self.done += 1
        begun = time.monotonic()
        for _ in range(TRIES):
            call.lost += 1
            try:
                status, raw = await wire.ask(method, path, body)
                break
            except LOST:  # a connection that was kept too long, for instance
                self.hung_up += 1
        else:
            self.strange.append(f"{method} {path} was never answered")
            return 0, {}
        if kind in self.seconds:
            self.seconds[kind].append(time.monotonic() - begun)
        call.lost -= 1
        answer = essence(kind, status, raw)
        call.answers.append((status, answer))
        if status not in {200, 201, 404, 409} and len(self.strange) < 20:
            self.strange.append(f"{method} {path} answered {status}: {raw[:200]!r}")
        return status, answer


_REFUSAL = {}


def essence(kind, status, raw):
    """Return what the checker reads, and a digest that is equal for equal answers."""
    if status not in {200, 201}:
        return _REFUSAL
    body = json.loads(raw)
    same = {"digest": hashlib.blake2b(raw, digest_size=8).digest()}
    if kind == "book":
        return same | {
            "serviceReservationId": body["serviceReservationId"],
            "accessCode": body["accessCode"],
            "link": body["guestAccessUrl"],
        }
    if kind == "cancel":
        return {"cancelledAt": body["cancelledAt"]}
    found = {"result": body["result"]}
    if body["result"] == "checked_in":
        found["firstCheckIn"] = {"at": body["firstCheckIn"]["at"]}
    return found
