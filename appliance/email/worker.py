"""The email worker: sends queued emails and retries failed ones.

The row in `letter` is the truth; memory is only a plan. Emails leave one after the other, each
recorded before the next is sent. After a crash at most one, the one in flight, is sent twice,
with the same Message-ID.
"""

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

MAIL_SETTINGS = "mail_settings"  # only the owner can resolve it
MAIL_UNREACHABLE = "mail_unreachable"
_REFUSED = "refused with"


def record_email_attempt(tx: Transaction, letter_id: str, outcome: Outcome) -> int | None:
    """Record an attempt. Returns the seconds until the next one, or None if there is none.

    An email is retried until the evening is over. If it is no longer waiting, nothing changes,
    so a repeated outcome counts once. A failure of the mail server or its settings raises an
    alert, which ends when an email is accepted.
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
    """Drop the mail server alerts."""
    drop_alert(tx, MAIL_SETTINGS, "")
    drop_alert(tx, MAIL_UNREACHABLE, "")


def _note_condition(tx: Transaction, outcome: Outcome) -> None:
    trouble = outcome.trouble or ""
    if outcome.result == "accepted" or (_REFUSED in trouble and outcome.result != "unreachable"):
        clear_email_alert(tx)  # the server responds, even if it rejects this email
    elif outcome.result != "unreachable":
        return  # the server was not contacted
    elif trouble.startswith(SETTINGS_TROUBLE):
        reason = trouble.removeprefix(SETTINGS_TROUBLE)
        _put(tx, MAIL_SETTINGS, f"no email is sent until mail.* is corrected: {reason}")
    else:
        _put(tx, MAIL_UNREACHABLE, f"emails wait and are retried: {trouble}")


def _put(tx: Transaction, name: str, sentence: str) -> None:
    other = MAIL_UNREACHABLE if name == MAIL_SETTINGS else MAIL_SETTINGS
    drop_alert(tx, other, "")
    put_alert(tx, Alert(name, "", tx.now, sentence))


def _evening_end(tx: Transaction, letter: Email) -> int:
    venue = get_venue(tx)
    day = date.fromisoformat(get_reservation(tx, letter.reservation_id).date)
    return evening_end(day, tx.zones.zone(venue.time_zone), venue.evening_ends_at)


log = logging.getLogger(__name__)

ANSWER_WITHIN = 5.0  # seconds that a booking waits for its email

_POSTPONED = Outcome("unreachable", "no email can be sent at present")


class EmailWorker:
    """Sends the emails of one environment. Belongs to the event loop that starts it."""

    def __init__(
        self,
        environment: Environment,
        clock: Clock,
        server: MailServer | None = None,
        *,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        """`server` defaults to the mail server in the settings.

        Without a mail server, emails wait. The test environment never sends any.
        """
        mail = environment.settings.mail
        if environment.name != "live":
            server = None
        elif server is None and mail.host:
            server = SmtpSender(mail)
        self._environment, self._clock, self._server = environment, clock, server
        self._composer = Composer(mail.sender)
        self._answer_within = answer_within
        self._fresh: dict[str, asyncio.Future[Outcome]] = {}  # new emails, oldest first
        # Retries: due time by the monotonic clock (s) and by the wall clock (ms since 1970).
        self._due: dict[str, tuple[float, int]] = {}
        self._in_flight: tuple[str, asyncio.Future[Outcome]] | None = None
        self._unrecorded: tuple[str, Outcome] | None = None
        self._is_slow = False  # a booking timed out, and no email was accepted since
        self._round: asyncio.Task[None] | None = None
        self._closed = False
        name = f"{environment.name}: emails"
        self.job = Job(name, environment.database, self.next_due, self._send_what_is_due)

    async def start(self) -> None:
        """Load the waiting emails and subscribe to new ones."""
        database = self._environment.database
        database.on_commit(self._notice)
        if self._server is None:
            return
        now = self._clock.now()
        waiting = await database.read(list_waiting_emails)
        if not waiting:
            with suppress(Unavailable):  # the box starts with a full disk too
                await database.write(clear_email_alert)
        for letter in waiting:
            if self._under_way(letter.id) is None:
                self._due[letter.id] = self._after(remaining_delay(letter, now))

    async def send_now(self, letter_id: str) -> Literal["sent", "failed"]:
        """Send an email and wait up to 5 s in total for the mail server to accept it.

        After `failed`, a slow attempt continues and a failed one is retried. After a timeout, the
        result is `failed` at once, until an email is accepted.
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
            if attempt.cancelled():  # the box is stopping; the caller was not cancelled
                return "failed"
            raise
        return "sent" if outcome.result == "accepted" else "failed"

    def wake(self) -> None:
        """Start sending due emails, unless a round is running."""
        if self._round is None and self._next() is not None:
            self._round = asyncio.get_running_loop().create_task(self._go_round())

    def next_due(self, _reader: Reader | None = None) -> int | None:
        """When the next retry is due, in ms since 1970; None without retries. Thread-safe."""
        wait = min(map(self._remaining, list(self._due.values())), default=None)
        return None if wait is None else self._clock.now() + math.ceil(wait * 1000)

    async def _send_what_is_due(self) -> None:
        self.wake()
        if self._round is not None:
            await asyncio.wait([self._round])

    async def close(self) -> None:
        """Stop. Wait `answer_within` seconds for the current email; the others stay queued."""
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
            if isinstance(notice, EmailQueued) and self._under_way(notice.email_id) is None:
                self._take_up(notice.email_id)

    def _under_way(self, letter_id: str) -> asyncio.Future[Outcome] | None:
        if self._in_flight is not None and self._in_flight[0] == letter_id:
            return self._in_flight[1]
        return self._fresh.get(letter_id)

    def _take_up(self, letter_id: str) -> asyncio.Future[Outcome]:
        """Queue an email before the retries. Returns the future of its attempt."""
        self._due.pop(letter_id, None)
        asked = self._fresh[letter_id] = asyncio.get_running_loop().create_future()
        self.wake()
        return asked

    async def _go_round(self) -> None:
        """Send the due emails one after another until none is due."""
        try:
            while self._server is not None and (letter_id := self._next()) is not None:
                await self._attempt(self._server, letter_id)
        finally:
            self._round = None
            if self._server is not None:
                self._server.part()
            self.job.changed()

    def _next(self) -> str | None:
        """Next email: first an unrecorded outcome, then new emails, then the retry due longest."""
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
        if delay is not None:  # after postponing, so that a failing email does not delay others
            self._due[letter_id] = self._after(delay)
        if not asked.done():
            asked.set_result(outcome)

    async def _try(self, server: MailServer, letter_id: str) -> Outcome:
        if self._unrecorded is not None:
            return self._unrecorded[1]
        outcome = await send_email(self._environment, self._composer, server, letter_id)
        if outcome.result != "accepted":
            log.warning("email: %s was not sent: %s", letter_id, outcome.trouble)
        return outcome

    async def _record(self, letter_id: str, outcome: Outcome) -> int | None:
        """Record the outcome. Returns the seconds until the next attempt, or None.

        If the write fails, the outcome is kept in memory and nothing else is sent: on a full
        disk, no guest receives the same email repeatedly.
        """
        try:
            delay = await self._environment.database.write(record_email_attempt, letter_id, outcome)
        except Exception as error:  # noqa: BLE001 - any failed write is retried
            name = type(error).__name__
            log.error("email: outcome of %s not recorded: %s", letter_id, name)  # noqa: TRY400
            self._unrecorded = letter_id, outcome
            return RETRY_SECONDS[0]
        self._unrecorded = None
        return delay

    def _after(self, seconds: float) -> tuple[float, int]:
        return self._clock.monotonic() + seconds, self._clock.now() + round(seconds * 1000)

    def _remaining(self, due: tuple[float, int]) -> float:
        """Seconds left, by the clock that says less: the monotonic clock stops during sleep."""
        return min(due[0] - self._clock.monotonic(), (due[1] - self._clock.now()) / 1000)

    def _postpone(self) -> None:
        """Postpone all emails by a minute, so that a failing server is tried once a minute."""
        later = self._after(RETRY_SECONDS[0])
        self._due = {letter_id: max(due, later) for letter_id, due in self._due.items()}
        self._due |= dict.fromkeys(self._fresh, later)
        for asked in self._fresh.values():
            if not asked.done():
                asked.set_result(_POSTPONED)
        self._fresh = {}
