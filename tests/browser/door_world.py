"""The door app in a real browser: a box that can be stopped and started, guests, phones."""

import asyncio
import io
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer, unused_port
from PIL import Image
from playwright.async_api import BrowserContext, Error, Page

from appliance.actions.offer_pairing import offer_pairing
from appliance.clock import StoppedClock
from appliance.environment import Environment
from appliance.model.qr import qr_png
from appliance.model.reservation import Reservation
from appliance.settings import Settings
from appliance.store.guest_passes import pass_text
from appliance.store.reservations import get_reservation
from tests.appliance.arrivals import add_reservation
from tests.application import application_of
from tests.browser.chromium import Chromium
from tests.conftest import opened_box

PHONE = {"width": 390, "height": 844}
_FRAME = (640, 480)
_STRIKE_SECONDS = 0.003  # from key to key of a scanner


@dataclass
class DoorWorld:
    """A furnished box on one port, up or down, and phones that are terminals of it."""

    directory: Path
    clock: StoppedClock
    settings: Settings
    chromium: Chromium
    name: str = "live"
    port: int = field(default_factory=unused_port)
    _box: AsyncExitStack | None = None
    _phones: list[BrowserContext] = field(default_factory=list)
    environment: Environment = field(init=False)
    other_environment: Environment = field(init=False)

    @property
    def url(self) -> str:
        prefix = "" if self.name == "live" else f"/{self.name}"
        return f"http://127.0.0.1:{self.port}{prefix}"

    async def start(self) -> None:
        """The box answers, with whatever it knew before."""
        stack = AsyncExitStack()
        box = await stack.enter_async_context(opened_box(self.directory, self.clock, self.settings))
        both = (box.live, box.test)
        self.environment, self.other_environment = both if self.name == "live" else both[::-1]
        server = TestServer(application_of(box), host="127.0.0.1", port=self.port)
        await server.start_server()
        stack.push_async_callback(server.close)
        self._box = stack

    async def stop(self) -> None:
        """The box is out of reach."""
        if self._box is not None:
            await self._box.aclose()
            self._box = None

    async def close(self) -> None:
        """Phones off, box off."""
        for context in self._phones:
            await context.close()
        await self.stop()

    def forget(self, context: BrowserContext) -> None:
        """A phone that is dead already needs no closing."""
        self._phones.remove(context)

    async def guest(self, **changes: Any) -> Reservation:
        """A confirmed reservation: two guests at T1 tonight for the whole evening."""
        return await self.environment.database.write(add_reservation, **changes)

    async def pass_of(self, reservation: Reservation) -> str:
        """The text of the guest's QR code."""
        environment = self.environment
        return await environment.database.read(
            pass_text, environment.keyring, environment.name, reservation
        )

    async def now_of(self, reservation: Reservation) -> Reservation:
        """The reservation as it is now."""
        return await self.environment.database.read(get_reservation, reservation.id)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the environment's database answers."""
        return await self.environment.database.read(lambda reader: list(reader.rows(sql)))

    async def phone(
        self,
        name: str = "Porte 1",
        *,
        role: str = "override",
        profile: Path | None = None,
        video: Path | None = None,
        arguments: Sequence[str] = (),
        **options: Any,
    ) -> "Phone":
        """A paired phone; `video` is what its camera sees."""
        phone = await self.unpaired(profile, video, arguments, **options)
        offered = await self.environment.database.write(offer_pairing, name, role)
        await phone.pair(offered.secret)
        return phone

    async def unpaired(
        self,
        profile: Path | None = None,
        video: Path | None = None,
        arguments: Sequence[str] = (),
        **options: Any,
    ) -> "Phone":
        """A phone that has never seen this box. `profile` is kept when its browser is killed.

        With a profile, a camera or arguments it has a browser of its own.
        """
        camera = [
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-video-capture={video}",
        ]
        kept = profile or self.directory / f"phone-{len(self._phones)}"
        options = {"viewport": PHONE, "locale": "fr-MA", "has_touch": True, **options}
        if profile or video or arguments:
            context = await self.chromium.launch_persistent(
                str(kept), [*(camera if video else ()), *arguments], **options
            )
        else:
            context = await (await self.chromium.shared()).new_context(**options)
        self._phones.append(context)
        page = context.pages[0] if context.pages else await context.new_page()
        return Phone(self, context, page, kept)


@dataclass
class Phone:
    """The door app as its doorman holds it."""

    world: DoorWorld
    context: BrowserContext
    page: Page
    profile: Path
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        # A browser reports every refused connection; that one is what the tests are about.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    async def open(self) -> None:
        """Open the app."""
        await self.page.goto(f"{self.world.url}/door")

    async def pair(self, secret: str) -> None:
        """Follow the link of the portal's QR, and wait for the evening's list."""
        await self.page.goto(f"{self.world.url}/door#pair={secret}")
        await self.page.click("#pair-form button[type=submit]")
        await self.page.wait_for_selector("#bar:not([hidden])")
        await self.is_ready()

    async def is_ready(self) -> None:
        """Connected, with a list for the time without the box and the app kept on the phone."""
        await self.page.wait_for_selector("body[data-box=up]")
        await self.until(_LISTED, self.world.name)
        await self.page.evaluate("navigator.serviceWorker.ready.then(() => true)")

    async def until(self, script: str, argument: Any = None) -> None:
        """Wait until a script says true, or promises it, a minute at most.

        Playwright's own waiting takes any promise for a yes.
        """

        async def is_so() -> bool:
            try:
                return bool(await self.page.evaluate(script, argument))
            except Error as error:
                if "context was destroyed" in str(error):  # the page is being loaded anew
                    return False
                raise

        await eventually(is_so)

    async def wedge(self, keys: str, codes: Sequence[str] | None = None) -> None:
        """A USB scanner types: real key events, whatever the host's layout makes of them."""
        events: list[dict[str, Any]] = [
            {"key": key, "text": key, "code": codes[n] if codes else ""}
            for n, key in enumerate(keys)
        ]
        events.append({"key": "Enter", "text": "\r", "code": "Enter", "windowsVirtualKeyCode": 13})
        session = await self.context.new_cdp_session(self.page)
        # The keys bear the times at which a scanner strikes them, as the system would report
        # them, however late a busy machine passes them on.
        begun = time.time() - _STRIKE_SECONDS * len(events)
        await asyncio.gather(
            *(
                session.send(
                    "Input.dispatchKeyEvent",
                    {"type": kind, "timestamp": begun + _STRIKE_SECONDS * n, **event},
                )
                for n, event in enumerate(events)
                for kind in ("keyDown", "keyUp")
            )
        )
        await session.detach()

    async def scan(self, text: str) -> str:
        """Scan by USB and wait for the verdict: its result."""
        before = await self.page.evaluate("window.verdicts ?? 0")
        await self.page.evaluate(_COUNT_VERDICTS)
        await self.wedge(text)
        await self.until("before => (window.verdicts ?? 0) > before", before)
        return await self.result()

    async def result(self) -> str:
        """The verdict that shows."""
        await self.page.wait_for_selector("#verdict[open]")
        return str(await self.page.get_attribute("#verdict", "data-result"))

    async def is_down(self) -> None:
        """The phone has noticed that the box is out of reach."""
        await self.page.wait_for_selector("body[data-box=down]", timeout=30_000)

    async def kill(self) -> None:
        """SIGKILL to the whole browser, as a phone does that needs the memory."""
        _kill_browser(self.profile)
        self.world.forget(self.context)

    async def is_synced(self) -> None:
        """The box is back, and has been told everything."""
        await self.page.wait_for_selector("body[data-box=up]", timeout=30_000)
        await self.until(_QUEUE_IS_EMPTY, self.world.name)


_COUNT_VERDICTS = """() => {
  if (window.counting) return;
  window.counting = true;
  window.verdicts ??= 0;
  const verdict = document.getElementById("verdict-sentence");
  new MutationObserver(() => (window.verdicts += 1)).observe(verdict, { childList: true });
}"""

_OPEN = """const name = `venuebox-door-${environment}`;
  if (!(await indexedDB.databases()).some((one) => one.name === name)) return false;
  const open = indexedDB.open(name);
  const database = await new Promise((done, fail) => {
    open.onsuccess = () => done(open.result);
    open.onerror = () => fail(open.error);
  });
  const ask = (store, call) => new Promise((done) => {
    const request = call(database.transaction(store).objectStore(store));
    request.onsuccess = () => { database.close(); done(request.result); };
  });"""
_LISTED = f"""async (environment) => {{ {_OPEN}
  return (await ask("kept", (store) => store.get("snapshot"))) !== undefined;
}}"""
_QUEUE_IS_EMPTY = f"""async (environment) => {{ {_OPEN}
  return (await ask("queue", (store) => store.count())) === 0;
}}"""


@asynccontextmanager
async def door_world(
    directory: Path, clock: StoppedClock, settings: Settings, chromium: Chromium, **options: Any
) -> AsyncIterator[DoorWorld]:
    """A started world."""
    world = DoorWorld(directory, clock, settings, chromium, **options)
    await world.start()
    try:
        yield world
    finally:
        await world.close()


def film(path: Path, texts: Sequence[str], frames: int = 30, blank: int = 6) -> Path:
    """A film for the fake camera: each code for `frames` pictures, then `blank` empty ones."""
    with path.open("wb") as file:
        nothing = _jpeg(None) * blank
        for text in texts:
            file.write(_jpeg(text) * frames + nothing)
        if not texts:
            file.write(nothing)
    return path


def film_of(path: Path, picture: Image.Image, frames: int = 60) -> Path:
    """A film of one thing that is held before the camera."""
    frame = Image.new("RGB", _FRAME, (38, 34, 30))
    frame.paste(picture, ((_FRAME[0] - picture.width) // 2, (_FRAME[1] - picture.height) // 2))
    file = io.BytesIO()
    frame.save(file, "JPEG", quality=80)
    path.write_bytes(file.getvalue() * frames)
    return path


def _jpeg(text: str | None) -> bytes:
    """A dim wall with a phone that shows the code."""
    frame = Image.new("RGB", _FRAME, (38, 34, 30))
    if text is not None:
        code = Image.open(io.BytesIO(qr_png(text, 6))).convert("RGB")
        frame.paste(code, ((_FRAME[0] - code.width) // 2, (_FRAME[1] - code.height) // 2))
    file = io.BytesIO()
    frame.save(file, "JPEG", quality=80)
    return file.getvalue()


async def eventually(is_true: Callable[[], Any]) -> None:
    """Wait until an awaited question is answered with yes, a minute at most."""
    for _ in range(1200):
        if await is_true():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


def _kill_browser(profile: Path) -> None:
    mark = f"--user-data-dir={profile}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
