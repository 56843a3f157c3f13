"""The postman: sends what waits in the outbox, and comes back to what could not be sent.

The row in `letter` is the truth, memory only a plan: after a crash whatever still waits is sent.
Letters leave one after the other, each recorded before the next is handed over. So at most one
letter, that in flight at the crash, can be sent twice, with the same Message-ID.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal

from appliance.actions.queue_letter import LetterQueued
from appliance.actions.record_letter import forget_mail_trouble, record_letter
from appliance.clock import Clock
from appliance.environment import Environment
from appliance.errors import Unavailable
from appliance.mail.composing import Composer
from appliance.mail.smtp import MailServer, SmtpSender, send_letter
from appliance.model.letter import RETRY_SECONDS, Outcome, remaining_delay
from appliance.store.letters import letter_state, list_waiting_letters

log = logging.getLogger(__name__)

ANSWER_WITHIN = 5.0  # seconds a booking waits for its letter

_POSTPONED = Outcome("unreachable", "no letter leaves at present")


class Postman:
    """Sends the letters of one environment. Belongs to the event loop that starts it."""

    def __init__(
        self,
        environment: Environment,
        clock: Clock,
        server: MailServer | None = None,
        *,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        """`server` is where letters are handed over; without it, that of the settings.

        Where there is none letters wait; in the test environment nothing is ever sent.
        """
        mail = environment.settings.mail
        if environment.name != "live":
            server = None
        elif server is None and mail.host:
            server = SmtpSender(mail)
        self._environment, self._clock, self._server = environment, clock, server
        self._composer = Composer(mail.sender)
        self._answer_within = answer_within
        self._fresh: dict[str, asyncio.Future[Outcome]] = {}  # in the order of their writing
        self._due: dict[str, float] = {}  # those that wait for a later attempt
        self._in_flight: tuple[str, asyncio.Future[Outcome]] | None = None
        self._unrecorded: tuple[str, Outcome] | None = None
        self._is_slow = False  # a booking waited in vain, and no letter has gone out since
        self._timer: asyncio.TimerHandle | None = None
        self._round: asyncio.Task[None] | None = None
        self._reckoning: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Take up what waits from before, and every letter that is queued from now on."""
        database = self._environment.database
        database.on_commit(self._notice)
        if self._server is None:
            return
        now, monotonic = self._clock.now(), self._clock.monotonic()
        waiting = await database.read(list_waiting_letters)
        if not waiting:
            await database.write(forget_mail_trouble)
        for letter in waiting:
            if self._under_way(letter.id) is None:
                self._due[letter.id] = monotonic + remaining_delay(letter, now)
        self._arm()

    async def send_now(self, letter_id: str) -> Literal["sent", "failed"]:
        """Whether the mail server accepts this letter within 5 s in total.

        `failed` loses nothing: a slow attempt goes on, and what failed is tried again. After a
        booking that waited in vain the answer is `failed` at once, until a letter goes out.
        """
        try:
            state = self._environment.database.peek(letter_state, letter_id)
        except Unavailable:
            return "failed"
        if state in {"sent", "kept"}:
            return "sent"
        if state != "waiting" or self._server is None or self._closed or self._is_slow:
            return "failed"
        attempt = self._under_way(letter_id) or self._take_up(letter_id)
        try:
            async with asyncio.timeout(self._answer_within):
                outcome = await asyncio.shield(attempt)
        except TimeoutError:
            self._is_slow = True
            return "failed"
        except asyncio.CancelledError:
            if attempt.cancelled():  # the box is stopping; it was not the caller who gave up
                return "failed"
            raise
        return "sent" if outcome.result == "accepted" else "failed"

    def wake(self) -> None:
        """Go on a round for what is due. The timer calls it; so may whoever moved the clock."""
        if self._round is None and self._next() is not None:
            self._disarm()
            self._round = asyncio.get_running_loop().create_task(self._go_round())

    def look_anew(self) -> None:
        """The clock was set or the machine slept, which no wait counts: some may be over."""
        if self._due and not self._closed and self._reckoning is None:
            self._reckoning = asyncio.get_running_loop().create_task(self._reckon_anew())

    async def close(self) -> None:
        """Stop. The letter in flight gets as long as a booking would wait; the rest waits."""
        self._closed = True
        self._disarm()
        if self._reckoning is not None:
            await self._reckoning
        if self._round is not None:
            _, slow = await asyncio.wait([self._round], timeout=self._answer_within)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
        for asked in self._fresh.values():
            asked.cancel()

    async def _reckon_anew(self) -> None:
        try:
            waiting = await self._environment.database.read(list_waiting_letters)
            now, monotonic = self._clock.now(), self._clock.monotonic()
            for letter in waiting:
                if letter.id in self._due:
                    due = monotonic + remaining_delay(letter, now)
                    self._due[letter.id] = min(due, self._due[letter.id])
        except Unavailable:
            log.info("letters that wait are tried when their time has come by the timer")
        finally:
            self._reckoning = None
            self._arm()

    def _notice(self, notices: Sequence[object]) -> None:
        if self._server is None or self._closed:
            return
        for notice in notices:
            if isinstance(notice, LetterQueued) and self._under_way(notice.letter_id) is None:
                self._take_up(notice.letter_id)

    def _under_way(self, letter_id: str) -> asyncio.Future[Outcome] | None:
        if self._in_flight is not None and self._in_flight[0] == letter_id:
            return self._in_flight[1]
        return self._fresh.get(letter_id)

    def _take_up(self, letter_id: str) -> asyncio.Future[Outcome]:
        """Put a letter before those that are tried again; its coming attempt."""
        self._due.pop(letter_id, None)
        asked = self._fresh[letter_id] = asyncio.get_running_loop().create_future()
        self.wake()
        return asked

    async def _go_round(self) -> None:
        """One letter after the other, for as long as one is due."""
        try:
            while self._server is not None and (letter_id := self._next()) is not None:
                await self._attempt(self._server, letter_id)
        finally:
            self._round = None
            if self._server is not None:
                self._server.part()
            self._arm()

    def _next(self) -> str | None:
        """What has to be recorded goes first, then new letters, then the one due longest."""
        if self._closed:
            return None
        first = min(self._due, key=self._due.__getitem__, default=None)
        is_due = first is not None and self._due[first] <= self._clock.monotonic()
        if self._unrecorded is not None and (is_due or self._fresh):
            return self._unrecorded[0]
        return next(iter(self._fresh), first if is_due else None)

    async def _attempt(self, server: MailServer, letter_id: str) -> None:
        self._due.pop(letter_id, None)
        asked = self._fresh.pop(letter_id, None) or asyncio.get_running_loop().create_future()
        self._in_flight = letter_id, asked
        try:
            outcome = await self._try(server, letter_id)
            delay = await self._record(letter_id, outcome)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        finally:
            self._in_flight = None
        if outcome.result == "accepted":
            self._is_slow = False
        now = self._clock.monotonic()
        if outcome.result == "unreachable" or self._unrecorded is not None:
            self._postpone(now)
        if delay is not None:  # after those that were postponed: a hopeless one is not in their way
            self._due[letter_id] = now + delay
        if not asked.done():
            asked.set_result(outcome)

    async def _try(self, server: MailServer, letter_id: str) -> Outcome:
        if self._unrecorded is not None:
            return self._unrecorded[1]
        outcome = await send_letter(self._environment, self._composer, server, letter_id)
        if outcome.result != "accepted":
            log.warning("letter %s was not sent: %s", letter_id, outcome.trouble)
        return outcome

    async def _record(self, letter_id: str, outcome: Outcome) -> int | None:
        """Seconds until the next attempt.

        What cannot be written now is remembered, and nothing else is sent meanwhile: a full disk
        makes nobody receive the same letter again and again.
        """
        try:
            delay = await self._environment.database.write(record_letter, letter_id, outcome)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            name = type(error).__name__
            log.error("letter %s: its outcome is not recorded (%s)", letter_id, name)  # noqa: TRY400
            self._unrecorded = letter_id, outcome
            return RETRY_SECONDS[0]
        self._unrecorded = None
        return delay

    def _postpone(self, now: float) -> None:
        """A server that takes no letter is asked once a minute, not for each that waits."""
        later = now + RETRY_SECONDS[0]
        self._due = {letter_id: max(due, later) for letter_id, due in self._due.items()}
        self._due |= dict.fromkeys(self._fresh, later)
        for asked in self._fresh.values():
            if not asked.done():
                asked.set_result(_POSTPONED)
        self._fresh = {}

    def _arm(self) -> None:
        """One timer, for the earliest letter; none while nothing waits."""
        self._disarm()
        if self._closed or self._round is not None or not self._due:
            return
        delay = max(0.0, min(self._due.values()) - self._clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.wake()
        if self._round is None:  # the loop's clock ran a moment ahead of ours
            self._arm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
