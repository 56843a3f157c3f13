"""Scanners attached to the box. Their codes are handled like a terminal's `POST /scans`."""

import asyncio
from contextlib import suppress
from functools import partial

from appliance.box import Box
from appliance.checks.check import READER_TROUBLE, observe
from appliance.core.errors import ApiError, Unavailable
from appliance.core.scanner_settings import ReaderSettings
from appliance.database.connection import Reader
from appliance.door.scan import UNREAD, Scan
from appliance.door.terminals import Terminal, list_terminals
from appliance.environment import Environment
from terminal_bridge.api.protocol import decide_code, touch
from terminal_bridge.scanners.scanner import ARRIVALS, Answer, Decide, Undecided, Watch
from terminal_bridge.scanners.scanners import Readers


def readers_of(box: Box) -> Readers:
    """Create the scanners from the box's settings. Their faults are stored as observations."""
    writing: set[asyncio.Task[None]] = set()

    async def write(watch: Watch) -> None:
        place = watch.settings.place
        with suppress(Unavailable):
            await box.live.database.write(observe, READER_TROUBLE, watch.trouble or "", place)

    def write_soon(watch: Watch) -> None:
        """Write in the background, because a write to a full disk would delay scans."""
        task = asyncio.ensure_future(write(watch))
        writing.add(task)
        task.add_done_callback(writing.discard)

    decider = partial(_decider, box)
    return Readers(box.settings.readers, decider, box.clock, write_soon)


def _environment(box: Box, name: str) -> Environment:
    return box.live if name == "live" else box.test


def _decider(box: Box, settings: ReaderSettings) -> Decide:
    environment = _environment(box, settings.environment)

    async def decide(code: str) -> Answer:
        terminal = environment.database.peek(find_terminal, settings.terminal)
        await touch(environment, terminal)
        now = box.clock.now()
        scanned = Scan(box.tokens.new_id(now), UNREAD, ARRIVALS)
        try:
            return Answer.of(await decide_code(environment, terminal, scanned, code))
        except ApiError as error:
            sentence = error.error_en if terminal.language == "en" else error.error
            raise Undecided(sentence) from None

    return decide


def find_terminal(reader: Reader, named: str) -> Terminal:
    """Return the terminal with the id `named`, or else the active terminal with that name.

    Raises Undecided if there is no such terminal, if it is revoked, or if several have the name.
    Called for each scan, because a terminal can be revoked at any time.
    """
    terminals = list_terminals(reader)
    found = [each for each in terminals if each.id == named]
    found = found or [each for each in terminals if each.name == named and each.revoked_at is None]
    if len(found) > 1:
        raise Undecided(f"several terminals are named {named}. Use an id in the settings instead")
    if not found:
        raise Undecided(f"there is no terminal {named}. Create it with venuebox terminal create")
    if found[0].revoked_at is not None:
        raise Undecided(
            f"the terminal {named} is revoked. Name a different terminal in the settings"
        )
    return found[0]
