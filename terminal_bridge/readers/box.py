"""How a reader at the box itself decides: as `POST /scans` does, under a terminal's name."""

import asyncio
from contextlib import suppress

from appliance.box import Box
from appliance.environment import Environment
from appliance.errors import Refusal, Unavailable
from appliance.model.terminal import Terminal
from appliance.settings_readers import ReaderSettings
from appliance.store.conditions import (
    Condition,
    drop_condition,
    drop_conditions,
    list_conditions,
    put_condition,
)
from appliance.store.connection import Reader, Transaction
from appliance.store.terminals import list_terminals, touch_terminal
from terminal_bridge.readers.answer import ARRIVALS, Answer, Decide, answer_of
from terminal_bridge.readers.readers import Readers, Undecided
from terminal_bridge.readers.state import ReaderState
from terminal_bridge.reading import Request
from terminal_bridge.scans import decide_code

READER_TROUBLE = "reader_trouble"  # the condition's name
_MINUTE = 60_000


def readers_of(box: Box) -> Readers:
    """The readers that the box's settings name."""
    noting = _Noting(box)
    return Readers(
        box.settings.readers,
        lambda settings: _decider(box, settings),
        box.clock,
        noting.note,
        noting.forget,
    )


class _Noting:
    """Puts the troubles of readers where `venuebox doctor` finds them, from outside too."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._writing: set[asyncio.Task[None]] = set()

    def note(self, state: ReaderState) -> None:
        """In the background: a full disk shuts no door for that."""
        task = asyncio.ensure_future(self._write(state))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def forget(self) -> None:
        """What was noted before a restart, perhaps of readers that are no more."""
        for environment in self._box.environments:
            if environment.database.peek(_has_any):
                with suppress(Unavailable):
                    await environment.database.write(drop_conditions, [READER_TROUBLE])

    async def _write(self, state: ReaderState) -> None:
        box = self._box
        environment = box.live if state.environment == "live" else box.test
        with suppress(Unavailable):
            await environment.database.write(_put, state)


def _has_any(reader: Reader) -> bool:
    return any(found.name == READER_TROUBLE for found in list_conditions(reader))


def _put(tx: Transaction, state: ReaderState) -> None:
    if state.trouble is None:
        drop_condition(tx, READER_TROUBLE, state.place)
    else:
        detail = f"The reader {state.place} {state.trouble}."
        put_condition(tx, Condition(READER_TROUBLE, state.place, tx.now, detail))


def _decider(box: Box, settings: ReaderSettings) -> Decide:
    environment = box.live if settings.environment == "live" else box.test

    async def decide(code: str) -> Answer:
        terminal = environment.database.peek(find_terminal, settings.terminal)
        await _touch(environment, terminal)
        now = box.clock.now()
        wish = Request(box.tokens.new_id(now), ARRIVALS, None, simulate=False, device_at=None)
        try:
            return answer_of(await decide_code(environment, terminal, wish, code))
        except Refusal as refusal:
            raise Undecided(
                refusal.error_en if terminal.language == "en" else refusal.error
            ) from None

    return decide


def find_terminal(reader: Reader, named: str) -> Terminal:
    """The terminal of that id, else the one in use of that name; Undecided says what is wrong.

    Asked at each scan: a terminal that was revoked is refused from the next one on.
    """
    terminals = list_terminals(reader)
    found = [one for one in terminals if one.id == named]
    found = found or [one for one in terminals if one.name == named and one.revoked_at is None]
    if len(found) > 1:
        raise Undecided(f"several terminals are named {named}: put the id of one in the settings")
    if not found:
        raise Undecided(f"there is no terminal {named}: make it with venuebox terminal create")
    if found[0].revoked_at is not None:
        raise Undecided(f"the terminal {named} was revoked: name another in the settings")
    return found[0]


async def _touch(environment: Environment, terminal: Terminal) -> None:
    """As for a terminal that calls: noted once a minute, and a full disk shuts no door."""
    seen = terminal.last_seen_at
    if seen is None or not 0 <= environment.database.clock.now() - seen < _MINUTE:
        with suppress(Unavailable):
            await environment.database.write(touch_terminal, terminal.id)
