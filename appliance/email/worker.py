"""The email worker: sends what is queued, and retries what failed."""

import asyncio
import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Literal

from appliance.alerts import Alert, drop_alert, put_alert
from appliance.clock import Clock
from appliance.core.errors import Unavailable
from appliance.database.connection import Reader, Transaction
from appliance.email.rendering import Composer
from appliance.email.smtp import MailServer, SmtpSender, send_email
from appliance.environment import Environment
from appliance.reservations.emails import (
    RETRY_SECONDS,
    SETTINGS_TROUBLE,
    Email,
    EmailQueued,
    Outcome,
    email_state,
    find_email,
    list_waiting_emails,
    remaining_delay,
    retry_delay,
)
from appliance.reservations.rows import get_reservation
from appliance.scheduler import Job
from appliance.venue.model import evening_end
from appliance.venue.rows import get_venue

MAIL_SETTINGS = "mail_settings"  # only the owner can end it
MAIL_UNREACHABLE = "mail_unreachable"
_REFUSED = "refused with"


def record_email_attempt(tx: Transaction, letter_id: str, outcome: Outcome) -> int | None:
    """Seconds until the next attempt, or None when there will be none.

    A letter is retried until the evening is over: then it has nothing left to say. One that
    no longer waits is left alone, so an outcome that comes twice counts once. What keeps every
    letter from leaving is noted as a condition, until one goes out again.
    """
    letter = find_email(tx, letter_id)
    if letter is None or letter.state != "waiting":
        return None
    _note_condition(tx, outcome)
    attempts = letter.attempts + 1
    told = {"attempts": attempts, "trouble": outcome.trouble}
    if outcome.result == "accepted":
        tx.update("letter", letter_id, state="sent", sent_at=tx.now, **told)
        return None
    delay = retry_delay(attempts)
    due_at = tx.now + delay * 1000
    if outcome.result == "refused" or due_at >= _evening_end(tx, letter):
        tx.update("letter", letter_id, state="failed", **told)
        return None
    tx.update("letter", letter_id, due_at=due_at, **told)
    return delay


def clear_email_alert(tx: Transaction) -> None:
    """Nothing is known against the mail server: nothing waits, or nothing was tried yet."""
    drop_alert(tx, MAIL_SETTINGS, "")
    drop_alert(tx, MAIL_UNREACHABLE, "")


def _note_condition(tx: Transaction, outcome: Outcome) -> None:
    trouble = outcome.trouble or ""
    if outcome.result == "accepted" or (_REFUSED in trouble and outcome.result != "unreachable"):
        clear_email_alert(tx)  # the server speaks with us, whatever it says of this letter
    elif outcome.result != "unreachable":
        return  # it was not asked
    elif trouble.startswith(SETTINGS_TROUBLE):
        reason = trouble.removeprefix(SETTINGS_TROUBLE)
        _put(tx, MAIL_SETTINGS, f"no letter leaves until mail.* is corrected: {reason}")
    else:
        _put(tx, MAIL_UNREACHABLE, f"letters wait, and are tried again: {trouble}")


def _put(tx: Transaction, name: str, sentence: str) -> None:
    other = MAIL_UNREACHABLE if name == MAIL_SETTINGS else MAIL_SETTINGS
    drop_alert(tx, other, "")
    put_alert(tx, Alert(name, "", tx.now, sentence))


def _evening_end(tx: Transaction, letter: Email) -> int:
    venue = get_venue(tx)
    day = date.fromisoformat(get_reservation(tx, letter.reservation_id).date)
    return evening_end(day, tx.zones.zone(venue.time_zone), venue.evening_ends_at)


log = logging.getLogger(__name__)

ANSWER_WITHIN = 5.0  # seconds a booking waits for its letter

_POSTPONED = Outcome("unreachable", "no letter leaves at present")


class EmailWorker:
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
        # Those that wait for a later attempt: until when by the monotonic clock, and by the other.
        self._due: dict[str, tuple[float, int]] = {}
        self._in_flight: tuple[str, asyncio.Future[Outcome]] | None = None
        self._unrecorded: tuple[str, Outcome] | None = None
        self._is_slow = False  # a booking waited in vain, and no letter has gone out since
        self._round: asyncio.Task[None] | None = None
        self._closed = False
        name = f"{environment.name}: letters"
        self.job = Job(name, environment.database, self.next_due, self._send_what_is_due)

    async def start(self) -> None:
        """Take up what waits from before, and every letter that is queued from now on."""
        database = self._environment.database
        database.on_commit(self._notice)
        if self._server is None:
            return
        now = self._clock.now()
        waiting = await database.read(list_waiting_emails)
        if not waiting:
            with suppress(Unavailable):  # a full disk does not keep the box from starting
                await database.write(clear_email_alert)
        for letter in waiting:
            if self._under_way(letter.id) is None:
                self._due[letter.id] = self._after(remaining_delay(letter, now))

    async def send_now(self, letter_id: str) -> Literal["sent", "failed"]:
        """Whether the mail server accepts this letter within 5 s in total.

        `failed` loses nothing: a slow attempt goes on, and what failed is tried again. After a
        booking that waited in vain the answer is `failed` at once, until a letter goes out.
        """
        try:
            state = self._environment.database.peek(email_state, letter_id)
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
        """Go on a round for what is due, unless one is under way."""
        if self._round is None and self._next() is not None:
            self._round = asyncio.get_running_loop().create_task(self._go_round())

    def next_due(self, _reader: Reader | None = None) -> int | None:
        """When a letter is due that waits for a later attempt, in ms since 1970; any thread."""
        wait = min(map(self._remaining, list(self._due.values())), default=None)
        return None if wait is None else self._clock.now() + math.ceil(wait * 1000)

    async def _send_what_is_due(self) -> None:
        self.wake()
        if self._round is not None:
            await asyncio.wait([self._round])

    async def close(self) -> None:
        """Stop. The letter in flight gets as long as a booking would wait; the rest waits."""
        self._closed = True
        if self._round is not None:
            _, slow = await asyncio.wait([self._round], timeout=self._answer_within)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
        for asked in self._fresh.values():
            asked.cancel()

    def _notice(self, notices: Sequence[object]) -> None:
        if self._server is None or self._closed:
            return
        for notice in notices:
            if isinstance(notice, EmailQueued) and self._under_way(notice.letter_id) is None:
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
            self.job.changed()

    def _next(self) -> str | None:
        """What has to be recorded goes first, then new letters, then the one due longest."""
        if self._closed:
            return None
        first = min(self._due, key=lambda id_: self._remaining(self._due[id_]), default=None)
        is_due = first is not None and self._remaining(self._due[first]) <= 0
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
        if outcome.result == "unreachable" or self._unrecorded is not None:
            self._postpone()
        if delay is not None:  # after those that were postponed: a hopeless one is not in their way
            self._due[letter_id] = self._after(delay)
        if not asked.done():
            asked.set_result(outcome)

    async def _try(self, server: MailServer, letter_id: str) -> Outcome:
        if self._unrecorded is not None:
            return self._unrecorded[1]
        outcome = await send_email(self._environment, self._composer, server, letter_id)
        if outcome.result != "accepted":
            log.warning("letter %s was not sent: %s", letter_id, outcome.trouble)
        return outcome

    async def _record(self, letter_id: str, outcome: Outcome) -> int | None:
        """Seconds until the next attempt.

        What cannot be written now is remembered, and nothing else is sent meanwhile: a full disk
        makes nobody receive the same letter again and again.
        """
        try:
            delay = await self._environment.database.write(record_email_attempt, letter_id, outcome)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            name = type(error).__name__
            log.error("letter %s: its outcome is not recorded (%s)", letter_id, name)  # noqa: TRY400
            self._unrecorded = letter_id, outcome
            return RETRY_SECONDS[0]
        self._unrecorded = None
        return delay

    def _after(self, seconds: float) -> tuple[float, int]:
        return self._clock.monotonic() + seconds, self._clock.now() + round(seconds * 1000)

    def _remaining(self, due: tuple[float, int]) -> float:
        """Seconds by either clock: one does not count while the machine sleeps."""
        return min(due[0] - self._clock.monotonic(), (due[1] - self._clock.now()) / 1000)

    def _postpone(self) -> None:
        """A server that takes no letter is asked once a minute, not for each that waits."""
        later = self._after(RETRY_SECONDS[0])
        self._due = {letter_id: max(due, later) for letter_id, due in self._due.items()}
        self._due |= dict.fromkeys(self._fresh, later)
        for asked in self._fresh.values():
            if not asked.done():
                asked.set_result(_POSTPONED)
        self._fresh = {}
