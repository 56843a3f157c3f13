"""Fixtures for the door app in a real browser: guests, phones, a box that can be stopped."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer
from playwright.async_api import BrowserContext

from appliance.core.settings import Settings
from appliance.door.guest_pass import pass_text
from appliance.door.terminals import offer_pairing
from appliance.environment import Environment
from appliance.reservations.model import Reservation
from appliance.reservations.rows import get_reservation
from tests.application import application_of
from tests.browser.chromium import Chromium
from tests.browser.phones import PHONE, Phone
from tests.clocks import StoppedClock
from tests.conftest import opened_box
from tests.ports import kept_port
from tests.unit.arrivals import add_reservation


@dataclass
class DoorWorld:
    """A furnished box on a fixed port, running or stopped, and its terminals (phones)."""

    directory: Path
    clock: StoppedClock
    settings: Settings
    chromium: Chromium
    name: str = "live"
    _box: AsyncExitStack | None = None
    _phones: list[BrowserContext] = field(default_factory=list)
    port: int = field(init=False)
    environment: Environment = field(init=False)
    other_environment: Environment = field(init=False)

    def __post_init__(self) -> None:
        self.port = kept_port(self)

    @property
    def url(self) -> str:
        prefix = "" if self.name == "live" else f"/{self.name}"
        return f"http://127.0.0.1:{self.port}{prefix}"

    async def start(self) -> None:
        """Start the box with its existing data."""
        stack = AsyncExitStack()
        box = await stack.enter_async_context(opened_box(self.directory, self.clock, self.settings))
        both = (box.live, box.test)
        self.environment, self.other_environment = both if self.name == "live" else both[::-1]
        server = TestServer(application_of(box), host="127.0.0.1", port=self.port)
        await server.start_server()
        stack.push_async_callback(server.close)
        self._box = stack

    async def stop(self) -> None:
        """Stop the box."""
        if self._box is not None:
            await self._box.aclose()
            self._box = None

    async def close(self) -> None:
        """Close the phones and stop the box."""
        for context in self._phones:
            await context.close()
        await self.stop()

    def forget(self, context: BrowserContext) -> None:
        """Do not close this phone at the end, because it is already dead."""
        self._phones.remove(context)

    async def guest(self, **changes: Any) -> Reservation:
        """Add a confirmed reservation: two guests at T1 for the whole evening."""
        return await self.environment.database.write(add_reservation, **changes)

    async def pass_of(self, reservation: Reservation) -> str:
        """Return the text of the guest's QR code."""
        environment = self.environment
        return await environment.database.read(
            pass_text, environment.keyring, environment.name, reservation
        )

    async def now_of(self, reservation: Reservation) -> Reservation:
        """Return the current reservation."""
        return await self.environment.database.read(get_reservation, reservation.id)

    async def are_in(self, reservation: Reservation, people: int) -> bool:
        """Return whether this many of the party have arrived."""
        return (await self.now_of(reservation)).arrived == people

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query on the environment's database."""
        return await self.environment.database.read(lambda reader: list(reader.rows(sql)))

    async def phone(
        self,
        name: str = "Porte 1",
        *,
        role: str = "override",
        profile: Path | None = None,
        video: Path | None = None,
        script: str = "",
        **options: Any,
    ) -> Phone:
        """Open a paired phone. `video` is the film of its camera; `script` runs in each page."""
        phone = await self.unpaired(profile, video, **options)
        await phone.page.add_init_script(script)
        offered = await self.environment.database.write(offer_pairing, name, role)
        await phone.pair(offered.secret)
        return phone

    async def unpaired(
        self,
        profile: Path | None = None,
        video: Path | None = None,
        **options: Any,
    ) -> Phone:
        """Open an unpaired phone. `profile` survives when its browser is killed.

        With a profile or a camera, the phone has its own browser.
        """
        camera = [
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-video-capture={video}",
        ]
        kept = profile or self.directory / f"phone-{len(self._phones)}"
        options = {"viewport": PHONE, "locale": "fr-MA", "has_touch": True, **options}
        if profile or video:
            context = await self.chromium.launch_persistent(
                str(kept), camera if video else [], **options
            )
        else:
            context = await (await self.chromium.shared()).new_context(**options)
        self._phones.append(context)
        page = context.pages[0] if context.pages else await context.new_page()
        return Phone(self.url, self.name, context, page, kept, self.forget)


@asynccontextmanager
async def door_world(
    directory: Path, clock: StoppedClock, settings: Settings, chromium: Chromium, **options: Any
) -> AsyncIterator[DoorWorld]:
    """Run a world."""
    world = DoorWorld(directory, clock, settings, chromium, **options)
    await world.start()
    try:
        yield world
    finally:
        await world.close()
