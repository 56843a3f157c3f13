"""The postman: sends what waits in the outbox, and comes back to what could not be sent.

The row in `letter` is the truth, memory only a plan: after a crash whatever still waits is sent,
and at most a letter that was in flight is sent twice, with the same Message-ID.
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
from appliance.mail.sending import Send, send_letter
from appliance.mail.smtp import SmtpSender
from appliance.model.letter import RETRY_SECONDS, SETTINGS_TROUBLE, Outcome, remaining_delay
from appliance.store.letters import letter_state, list_waiting_letters

log = logging.getLogger(__name__)

ANSWER_WITHIN = 5.0  # seconds a booking waits for its letter (decisions.md)
ATTEMPT_WITHIN = 60.0  # seconds a slow server may take when nobody waits
FRESH_AT_ONCE = 4  # connections for new letters; one more brings the retries


class Postman:
    """Sends the letters of one environment. Belongs to the event loop that starts it."""

    def __init__(
        self,
        environment: Environment,
        clock: Clock,
        send: Send | None = None,
        *,
        answer_within: float = ANSWER_WITHIN,
        attempt_within: float = ATTEMPT_WITHIN,
    ) -> None:
        """`send` hands one letter to a mail server, or raises Undelivered.

        Without it the server of the settings is used. Where there is none letters wait; in
        the test environment nothing is ever sent.
        """
        mail = environment.settings.mail
        if environment.name != "live":
            send = None
        elif send is None and mail.host:
            send = SmtpSender(mail).send
        self._environment, self._clock, self._send = environment, clock, send
        self._composer = Composer(mail.sender)
        self._answer_within, self._attempt_within = answer_within, attempt_within
        self._fresh, self._again = asyncio.Semaphore(FRESH_AT_ONCE), asyncio.Semaphore(1)
        self._in_flight: dict[str, asyncio.Task[Outcome]] = {}
        self._unrecorded: dict[str, Outcome] = {}
        self._due: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._round: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Take up what waits from before, and every letter that is queued from now on."""
        database = self._environment.database
        database.on_commit(self._notice)
        if self._send is None:
            return
        now, monotonic = self._clock.now(), self._clock.monotonic()
        waiting = await database.read(list_waiting_letters)
        if not waiting:
            await database.write(forget_mail_trouble)
        for letter in waiting:
            if letter.id not in self._in_flight:
                self._due[letter.id] = monotonic + remaining_delay(letter, now)
        self._arm()

    async def send_now(self, letter_id: str) -> Literal["sent", "failed"]:
        """Whether the mail server accepts this letter within 5 s in total.

        `failed` loses nothing: a slow attempt goes on, and what failed is tried again.
        """
        try:
            state = self._environment.database.peek(letter_state, letter_id)
        except Unavailable:
            return "failed"
        if state in {"sent", "kept"}:
            return "sent"
        attempt = self._in_flight.get(letter_id)
        if attempt is None:
            if state != "waiting" or self._send is None or self._closed:
                return "failed"
            attempt = self._begin(letter_id, self._fresh)
        try:
            async with asyncio.timeout(self._answer_within):
                outcome = await asyncio.shield(attempt)
        except TimeoutError:
            return "failed"
        except asyncio.CancelledError:
            if attempt.cancelled():  # the box is stopping; it was not the caller who gave up
                return "failed"
            raise
        return "sent" if outcome.result == "accepted" else "failed"

    def wake(self) -> None:
        """Go on a round for what is due. The timer calls it; so may whoever moved the clock."""
        if not self._closed and self._round is None and self._next_due() is not None:
            self._round = asyncio.get_running_loop().create_task(self._go_round())

    async def close(self) -> None:
        """Stop. Letters in flight get as long as a booking would wait; the rest keeps waiting."""
        self._closed = True
        self._disarm()
        under_way: list[asyncio.Task[Outcome] | asyncio.Task[None]] = [*self._in_flight.values()]
        if self._round is not None:
            under_way.append(self._round)
        if under_way:
            _, slow = await asyncio.wait(under_way, timeout=self._answer_within)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)

    def _notice(self, notices: Sequence[object]) -> None:
        if self._send is None or self._closed:
            return
        for notice in notices:
            if isinstance(notice, LetterQueued) and notice.letter_id not in self._in_flight:
                self._begin(notice.letter_id, self._fresh)

    def _begin(self, letter_id: str, places: asyncio.Semaphore) -> asyncio.Task[Outcome]:
        """Start an attempt. Whoever asks again while it runs is given this one."""
        self._due.pop(letter_id, None)
        task = asyncio.get_running_loop().create_task(self._attempt(letter_id, places))
        self._in_flight[letter_id] = task
        task.add_done_callback(lambda _: self._in_flight.pop(letter_id, None))
        return task

    async def _attempt(self, letter_id: str, places: asyncio.Semaphore) -> Outcome:
        outcome = self._unrecorded.get(letter_id)
        if outcome is None:
            outcome = await self._try(letter_id, places)
        if outcome.result != "accepted":
            log.warning("letter %s was not sent: %s", letter_id, outcome.trouble)
        delay = await self._record(letter_id, outcome)
        if delay is not None:
            self._due[letter_id] = self._clock.monotonic() + delay
            self._arm()
        return outcome

    async def _try(self, letter_id: str, places: asyncio.Semaphore) -> Outcome:
        if self._send is None:
            return Outcome("unreachable", f"{SETTINGS_TROUBLE}mail.host is empty")
        try:
            async with asyncio.timeout(self._attempt_within), places:
                return await send_letter(self._environment, self._composer, self._send, letter_id)
        except TimeoutError:
            return Outcome("unreachable", "the mail server did not answer in time")

    async def _record(self, letter_id: str, outcome: Outcome) -> int | None:
        """Seconds until the next attempt.

        What cannot be written now is remembered meanwhile: a full disk makes nobody receive
        the same letter again and again.
        """
        try:
            delay = await self._environment.database.write(record_letter, letter_id, outcome)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            name = type(error).__name__
            log.error("letter %s: its outcome is not recorded (%s)", letter_id, name)  # noqa: TRY400
            self._unrecorded[letter_id] = outcome
            return RETRY_SECONDS[0]
        self._unrecorded.pop(letter_id, None)
        return delay

    async def _go_round(self) -> None:
        """One letter after the other. A server that takes none is asked once, not for each."""
        try:
            while not self._closed and (letter_id := self._next_due()) is not None:
                outcome = await asyncio.shield(self._begin(letter_id, self._again))
                if outcome.result == "unreachable":
                    later = self._clock.monotonic() + RETRY_SECONDS[0]
                    self._due = {id_: max(due, later) for id_, due in self._due.items()}
        finally:
            self._round = None
            self._arm()

    def _next_due(self) -> str | None:
        """The letter that is due longest."""
        first = min(self._due, key=self._due.__getitem__, default=None)
        if first is None or self._due[first] > self._clock.monotonic():
            return None
        return first

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
