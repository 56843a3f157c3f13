"""A running box with fifty partners, eight doors and twenty staff, for the long steps."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date

from appliance.api_keys import issue_key
from appliance.clock import SystemClock, newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from appliance.door.terminals import issue_terminal
from appliance.staff.accounts import create_staff
from appliance.staff.model import set_password
from appliance.staff.sign_in import start_session
from tests.journeys.box_process import BoxProcess, Founded, found_box
from tests.journeys.partner_side import Caller, Received, Receiver, calling
from tests.promises.checker import History, read_rows

PARTNERS = 50
DOORS = 8
HOUSE = 20
SETTLED_SECONDS = 120.0


@dataclass
class Evening:
    """The box, and the secrets of everybody."""

    founded: Founded
    box: BoxProcess
    receiver: Receiver
    history: History
    partner: Caller
    tables: list
    tonight: date
    keys: list
    doors: list
    sessions: list

    def rows(self):
        return read_rows(self.founded.data / "live.db")

    async def settle(self):
        """Wait until no delivery is pending. Return how many still are."""
        for _ in range(int(SETTLED_SECONDS)):
            rows = await asyncio.to_thread(self.rows)
            states = [one["state"] for event in rows.events for one in event["deliveries"]]
            if "pending" not in states:
                break
            await asyncio.sleep(1)
        return states.count("pending")


class TerseReceiver(Receiver):
    """A receiver that keeps only what the checker reads of a hundred thousand deliveries."""

    def note(self, one):
        reservation = {"serviceReservationId": one.reservation["serviceReservationId"]}
        body = {"id": one.body["id"], "data": {"reservation": reservation}}
        return Received(one.address, one.event, one.delivery, one.signature_held, body)

    async def _receive(self, request):
        answer = await super()._receive(request)
        self.received[-1] = self.note(self.received[-1])
        return answer


@asynccontextmanager
async def an_evening(folder, endpoints, tables):
    """Run a box with these tables and endpoints. `endpoints` maps names to event types or None."""
    receiver = TerseReceiver()
    async with receiver.running():
        founded = await asyncio.to_thread(found_box, folder, tables)
        keys, doors, sessions = await asyncio.to_thread(invite, founded.data)
        box = BoxProcess(founded.data, log=folder / "box.log", settings=receiver.settings)
        try:
            await asyncio.to_thread(box.start)
            async with calling(box, founded, "live") as (partner, door):
                history = History()
                for name, events in endpoints.items():
                    body = {"url": receiver.url(name)} | ({"events": events} if events else {})
                    made = await partner.must(201, "POST", "/v1/webhooks", body)
                    receiver.secrets[name] = made["secret"]
                    history.endpoints[made["id"]] = made["events"]
                venue = await partner.must(200, "GET", "/v1/venue")
                tables = [table["id"] for table in venue["tables"]]
                tonight = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
                yield Evening(founded, box, receiver, history, partner, tables,
                              date.fromisoformat(tonight), keys, doors, sessions)  # fmt: skip
        finally:
            box.kill()


def invite(data):
    """Create keys, terminal tokens and session secrets."""
    with session(data / "live.db", SystemClock(), Tokens(), newest_zone_database()) as tx:
        keys = [issue_key(tx, "live", f"Partner {n}").key for n in range(PARTNERS)]
        doors = [issue_terminal(tx, f"Porte {n}")[1] for n in range(DOORS)]
        sessions = []
        for number in range(HOUSE):
            staff_id = create_staff(tx, f"Yasmine {number}", "owner").staff_id
            set_password(tx, staff_id, "none that fits")
            sessions.append(start_session(tx, staff_id, None, "a soak").secret)
    return keys, doors, sessions
