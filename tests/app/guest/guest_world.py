"""An environment with the guests' pages, and reservations in any state."""

from dataclasses import dataclass
from datetime import date

from aiohttp import web

from appliance.box import Box
from appliance.database.connection import Transaction
from appliance.database.database import Database
from appliance.environment import Environment
from appliance.http.request import CALLER_OF, ENVIRONMENT
from appliance.reservations.rows import insert_reservation, update_reservation
from appliance.venue.model import WHOLE_EVENING, link_expiry
from tests.application import share_templates
from tests.builders import TONIGHT, table_id
from tests.clocks import StoppedClock
from web.guest.responses import make_guest_limits
from web.hosts import HttpsPolicy
from web.middleware import SECURE
from web.rendering import STATIC_ROUTES, prepare_pages
from web.routes import GUEST_ROUTES

HOURS = {"19:30": (1170, 1320), "22:00": (1320, 1500), "12:00": (720, 900), "00:30": (1470, 1560),
         None: WHOLE_EVENING}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GuestWorld:
    """An environment, its clock, and the application that serves it."""

    environment: Environment
    clock: StoppedClock
    app: web.Application

    @property
    def database(self) -> Database:
        return self.environment.database

    async def reserve(self, **changes: object) -> str:
        """Insert a reservation (T5 tonight at 19:30, confirmed, four guests). Return its id."""
        return await self.database.write(_insert, changes)

    async def change(self, reservation_id: str, **changes: object) -> None:
        """Set columns of a reservation."""
        await self.database.write(update_reservation, reservation_id, **changes)

    def access(self, reservation_id: str) -> str:
        """Return the path of its access page."""
        token = self.environment.keyring.access_token(reservation_id, 0)
        return f"{self.environment.prefix}/access/{token}"

    def claim(self, reservation_id: str) -> str:
        """Return the path of its claim page."""
        token = self.environment.keyring.claim_token(reservation_id, 0)
        return f"{self.environment.prefix}/claim-guest/{token}"


def guest_worlds(box: Box, clock: StoppedClock) -> tuple[GuestWorld, GuestWorld]:
    """Return the live and the test environment, served by the same application."""
    app = guest_application(box)
    return GuestWorld(box.live, clock, app), GuestWorld(box.test, clock, app)


def guest_application(box: Box) -> web.Application:
    """Return an application with the guest routes alone, for live and, under /test, for test."""

    @web.middleware
    async def enter(request: web.Request, handler):
        request[ENVIRONMENT] = box.test if request.path.startswith("/test/") else box.live
        return await handler(request)

    app = web.Application(middlewares=[enter])
    prepare_pages(app)
    share_templates(app)
    app[SECURE] = HttpsPolicy(box.settings.server, 0)
    app[CALLER_OF] = app[SECURE].caller_of
    make_guest_limits(app, box)
    for prefix in ("", "/test"):
        app.add_routes([web.route(method, prefix + path, do) for method, path, do in GUEST_ROUTES])
    app.add_routes([web.route(*route) for route in STATIC_ROUTES])
    return app


def _insert(tx: Transaction, changes: dict[str, object]) -> str:
    day, slot = str(changes.get("date", TONIGHT)), changes.get("slot", "19:30")
    starts, ends = HOURS[slot]
    values = {
        "id": tx.new_id(),
        "status": "confirmed",
        "source": "partner",
        "table_id": table_id("T5"),
        "date": day,
        "slot": slot,
        "starts": starts,
        "ends": ends,
        "guests": 4,
        "customer_name": "Salma Bennani",
        "customer_email": "salma@example.org",
        "access_code": tx.tokens.new_access_code(),
        "pass_id": tx.tokens.random_bytes(8),
        "link_expires_at": link_expiry(date.fromisoformat(day), tx.zones.zone("Africa/Casablanca")),
        "created_at": tx.now,
        "updated_at": tx.now,
        **changes,
    }
    insert_reservation(tx, values)
    return str(values["id"])
