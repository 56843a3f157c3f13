"""A phone with the door app in a real browser, which pairs, scans, goes offline and crashes."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, Error, Page

from tests.waiting import until

PHONE = {"width": 390, "height": 844}
ONLINE = "dispatchEvent(new Event('online'))"
_STRIKE_SECONDS = 0.003  # milliseconds between two keys of a scanner
# A busy machine has ten times as long until the app gives up a request ("abort") or closes a green
# verdict by itself ("autoClosed"). A test that is about one of them does not wait for it: `hurry`.
_LEISURE = """(() => {
  const { setTimeout, clearTimeout } = window;
  const waiting = new Map();
  window.setTimeout = (callback, wait, ...more) => {
    const what = ["abort", "autoClosed"].find((name) => String(callback).includes(name));
    const id = setTimeout(callback, what ? 10 * wait : wait, ...more);
    if (what) waiting.set(id, [what, callback]);
    return id;
  };
  window.clearTimeout = (id) => {
    waiting.delete(id);
    clearTimeout(id);
  };
  window.hurry = (wanted) => waiting.forEach(([what, callback], id) => {
    if (what !== wanted) return;
    window.clearTimeout(id);
    callback();
  });
})()"""


@dataclass
class Phone:
    """A phone with the door app, operated by door staff."""

    url: str
    environment: str
    context: BrowserContext
    page: Page
    profile: Path
    forget: Callable[[BrowserContext], None]  # called when the phone has been killed
    complaints: list[str] = field(default_factory=list)
    _has_leisure: bool = False

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        # The browser logs every refused connection, which these tests cause on purpose.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    async def open(self) -> None:
        """Open the app."""
        await self._take_leisure()
        await self.page.goto(f"{self.url}/door")

    async def pair(self, secret: str) -> None:
        """Open the link of the portal's QR code, and wait for the guest list."""
        await self._take_leisure()
        await self.page.goto(f"{self.url}/door#pair={secret}")
        await self.page.click("#pair-form button[type=submit]")
        await self.page.wait_for_selector("#bar:not([hidden])")
        await self.is_ready()

    async def _take_leisure(self) -> None:
        if not self._has_leisure:
            self._has_leisure = True
            await self.page.add_init_script(_LEISURE)

    async def hurry(self, what: str) -> None:
        """Let the app do at once what it waits to do: `abort` a request, or `autoClosed`."""
        await self.page.evaluate("what => hurry(what)", what)

    async def is_ready(self) -> None:
        """Wait until the app is connected, has a snapshot and is cached for offline use."""
        await self.page.wait_for_selector("body[data-box=up]")
        await self.until(_LISTED, self.environment)
        await self.page.evaluate("navigator.serviceWorker.ready.then(() => true)")

    async def until(self, script: str, argument: Any = None) -> None:
        """Wait until a script returns true or a promise of true.

        Playwright's own `wait_for_function` accepts every promise as true.
        """

        async def is_so() -> bool:
            try:
                return bool(await self.page.evaluate(script, argument))
            except Error as error:
                if "context was destroyed" in str(error):  # the page is reloading
                    return False
                raise

        await until(is_so)

    async def wedge(
        self, keys: str, codes: Sequence[str] | None = None, *, enter: bool = True
    ) -> None:
        """Type like a USB scanner, with real key events in the host's layout.

        With `enter`, the scanner ends the code with Enter.
        """
        events: list[dict[str, Any]] = [
            {"key": key, "text": key, "code": codes[n] if codes else ""}
            for n, key in enumerate(keys)
        ]
        end = {"key": "Enter", "text": "\r", "code": "Enter", "windowsVirtualKeyCode": 13}
        events += [end] * enter
        session = await self.context.new_cdp_session(self.page)
        # Give the key events a scanner's time stamps, even if a busy machine delays them.
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

    async def scan(self, text: str, *, enter: bool = True) -> str:
        """Scan by USB, wait for the verdict, and return its result."""
        before = await self.page.evaluate("window.verdicts ?? 0")
        await self.page.evaluate(_COUNT_VERDICTS)
        await self.wedge(text, enter=enter)
        await self.until("before => (window.verdicts ?? 0) > before", before)
        return await self.result()

    async def result(self) -> str:
        """Return the result of the verdict on screen."""
        await self.page.wait_for_selector("#verdict[open]")
        return str(await self.page.get_attribute("#verdict", "data-result"))

    async def type_code(self, text: str) -> tuple[str, str | None]:
        """Type a code or name into the app; return the verdict's result and colour."""
        if await self.page.is_visible("#verdict"):
            await self.page.keyboard.press("Escape")
            await self.page.wait_for_selector("#verdict", state="hidden")
        await self.page.click("#open-code")
        await self.page.fill("#code", text)
        await self.page.click("#code-form button[type=submit]")
        return await self.result(), await self.page.get_attribute("#verdict", "data-colour")

    async def let_in_anyway(self) -> None:
        """Override the verdict on screen with the first reason."""
        await self.page.click("#override")
        await self.page.locator("#reasons [data-reason]").first.click()
        await self.page.wait_for_selector("#verdict[data-colour=green]")

    async def undo(self) -> None:
        """Undo the check-in on screen."""
        await self.page.click("#undo")
        await self.until("() => document.getElementById('verdict').dataset.result === 'undone'")

    async def lose_box(self) -> None:
        """Cut this phone off from the box; the box serves others."""
        await self.page.route("**/terminal/v1/**", lambda route: route.abort())
        await self.page.evaluate("dispatchEvent(new Event('offline'))")
        await self.is_down()

    async def find_box(self) -> None:
        """Reconnect this phone to the box, without waiting."""
        await self.page.unroute("**/terminal/v1/**")
        await self.page.evaluate(ONLINE)

    async def is_down(self) -> None:
        """Wait until the phone shows that the box is unreachable."""
        await self.page.wait_for_selector("body[data-box=down]", timeout=30_000)

    async def kill(self) -> None:
        """Kill the whole browser with SIGKILL, as a phone short of memory does."""
        _kill_browser(self.profile)
        self.forget(self.context)

    async def kept(self, name: str) -> Any:
        """Return what the app has stored under this name."""
        return await self.page.evaluate(_KEPT, [self.environment, name])

    async def is_synced(self) -> None:
        """Wait until the phone is connected and its queue is empty."""
        await self.page.wait_for_selector("body[data-box=up]", timeout=30_000)
        await self.until(_QUEUE_IS_EMPTY, self.environment)


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
_KEPT = f"""async ([environment, key]) => {{ {_OPEN}
  return await ask("kept", (store) => store.get(key));
}}"""
_LISTED = f"""async (environment) => {{ {_OPEN}
  return (await ask("kept", (store) => store.get("snapshot"))) !== undefined;
}}"""
_QUEUE_IS_EMPTY = f"""async (environment) => {{ {_OPEN}
  return (await ask("queue", (store) => store.count())) === 0;
}}"""


def _kill_browser(profile: Path) -> None:
    mark = f"--user-data-dir={profile}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
