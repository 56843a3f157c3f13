"""Send queued emails and retry failed emails.

The queue is the table `letter`. The worker keeps only the due times in memory. It sends one email
at a time, and records its outcome before it sends the next. After a crash, at most one email is
sent twice, with the same Message-ID.
"""

import asyncio
import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Literal

from appliance.alerts import drop_alerts, set_alert
from appliance.clock import Clock
from appliance.core.errors import Unavailable
from appliance.core.i18n import mark as _
from appliance.database.connection import Reader, Transaction
from appliance.email.rendering import Composer, UnusableAddress, read_contents
from appliance.email.smtp import SmtpSender, Undelivered
from appliance.environment import Environment
from appliance.reservations.email_queue import (
    RETRY_SECONDS,
    SETTINGS_TROUBLE,
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
from appliance.venue.model import evening_end, get_venue

log = logging.getLogger(__name__)

MAIL_SETTINGS = "mail_settings"  # the alert for errors that only the owner can correct
MAIL_UNREACHABLE = "mail_unreachable"  # the alert for errors that may resolve themselves
_REFUSED = "refused with"  # part of the error text if the server refused a command
_NEW = (-math.inf, 0)  # the due time of a new email, which is sent before all retries


def record_email_attempt(tx: Transaction, email_id: str, outcome: Outcome) -> int | None:
    """Record an attempt to send an email. Return the seconds until the next attempt, or None.

    An email is retried until the reservation's evening is over. Only a waiting email changes, so
    an outcome that is recorded twice counts once. A failure of the mail server, or a
    mistake in its settings, creates an alert. The alert ends when the server accepts an email, or
    rejects one for a reason that concerns only that email.
    """
    email = find_email(tx, email_id)
    if email is None or email.state != "waiting":
        return None
    _update_alerts(tx, outcome)
    attempts = email.attempts + 1
    attempt = {"attempts": attempts, "trouble": outcome.trouble}
    if outcome.result == "accepted":
        tx.update("letter", email_id, state="sent", sent_at=tx.now, **attempt)
        return None
    delay = retry_delay(attempts)
    due_at = tx.now + delay * 1000
    venue, reservation = get_venue(tx), get_reservation(tx, email.reservation_id)
    day, zone = date.fromisoformat(reservation.date), tx.zones.zone(venue.time_zone)
    if outcome.result == "refused" or due_at >= evening_end(day, zone, venue.evening_ends_at):
        tx.update("letter", email_id, state="failed", **attempt)
        return None
    tx.update("letter", email_id, due_at=due_at, **attempt)
    return delay


def clear_email_alerts(tx: Transaction) -> None:
    """Delete both alerts about the mail server."""
    drop_alerts(tx, (MAIL_SETTINGS, MAIL_UNREACHABLE))


def _update_alerts(tx: Transaction, outcome: Outcome) -> None:
    trouble = outcome.trouble or ""
    if outcome.result == "accepted" or (_REFUSED in trouble and outcome.result != "unreachable"):
        clear_email_alerts(tx)  # the server works, even if it rejects this email
    elif outcome.result != "unreachable":
        return  # the outcome does not tell whether the server works
    elif trouble.startswith(SETTINGS_TROUBLE):
        reason = trouble.removeprefix(SETTINGS_TROUBLE)
        sentence = f"no email is sent until the mail settings are corrected: {reason}"
        set_alert(tx, MAIL_UNREACHABLE, "")
        set_alert(tx, MAIL_SETTINGS, sentence)
    else:
        sentence = f"emails cannot be sent and will be retried: {trouble}"
        set_alert(tx, MAIL_SETTINGS, "")
        set_alert(tx, MAIL_UNREACHABLE, sentence)


class EmailWorker:
    """Sends one environment's emails. Use it only in the event loop that started it."""

    answer_within = 5.0  # longest time that a booking request waits for its email to be sent, in s

    def __init__(
        self, environment: Environment, clock: Clock, server: SmtpSender | None = None
    ) -> None:
        """Create a worker. `server` defaults to the mail server in the settings.

        If no mail server is configured, emails stay queued. The test environment sends no email.
        """
        mail = environment.settings.mail
        if environment.name != "live":
            server = None
        elif server is None and mail.host:
            server = SmtpSender(mail)
        self._environment, self._clock, self._server = environment, clock, server
        self._composer = Composer(mail.sender)
        # When each waiting email is due, on the monotonic clock (s) and on the wall clock (ms
        # since 1970).
        self._due: dict[str, tuple[float, int]] = {}
        # The futures that `send_now` waits for. The result is true if the email was accepted.
        self._waiters: dict[str, asyncio.Future[bool]] = {}
        self._in_progress: str | None = None
        self._unrecorded: tuple[str, Outcome] | None = None
        self._round: asyncio.Task[None] | None = None
        self._is_slow = self._closed = False
        name, database = f"{environment.name}: emails", environment.database
        self.job = Job(name, database, self.next_due, self._send_due_emails)

    async def start(self) -> None:
        """Load the waiting emails, and start to listen for new emails."""
        if self._server is None:
            return
        database, now = self._environment.database, self._clock.now()
        for email in database.peek(list_waiting_emails):
            self._due[email.id] = self._after(remaining_delay(email, now))
        database.on_commit(self._on_commit)
        if not self._due:
            with suppress(Unavailable):  # the disk may be full
                await database.write(clear_email_alerts)

    async def send_now(self, email_id: str) -> Literal["sent", "failed"]:
        """Send an email, and wait up to 5 s for the mail server to accept it.

        The result `failed` does not cancel the email. A slow attempt continues, and a failed
        attempt is retried. After a timeout, later calls return `failed` without waiting, until the
        server accepts an email.
        """
        try:
            state = self._environment.database.peek(email_state, email_id)
        except Unavailable:
            return "failed"
        if state in {"sent", "kept"}:
            return "sent"
        if state != "waiting" or self._server is None or self._closed or self._is_slow:
            return "failed"
        new_waiter = asyncio.get_running_loop().create_future()
        waiter = self._waiters.setdefault(email_id, new_waiter)
        self._send_first(email_id)
        done, _ = await asyncio.wait([waiter], timeout=self.answer_within)
        if not done:
            self._is_slow = True
        return "sent" if done and waiter.result() else "failed"

    def wake(self) -> None:
        """Start to send the emails that are due, unless sending is in progress."""
        if self._server is not None and self._round is None and self._next() is not None:
            self._round = asyncio.get_running_loop().create_task(self._send_round(self._server))

    def next_due(self, _reader: Reader | None = None) -> int | None:
        """Return when the next email is due, in ms since 1970, or None. Thread-safe."""
        waits = [max(0.0, self._remaining(due)) for due in list(self._due.values())]
        return self._clock.now() + math.ceil(min(waits) * 1000) if waits else None

    async def _send_due_emails(self) -> None:
        self.wake()
        if self._round is not None:
            await asyncio.wait([self._round])

    async def close(self) -> None:
        """Stop the worker. Wait up to `answer_within` seconds for the email in progress.

        All other emails stay queued.
        """
        self._closed = True
        if self._round is not None:
            _, slow = await asyncio.wait([self._round], timeout=self.answer_within)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
        self._fail_waiters()

    def _on_commit(self, notices: Sequence[object]) -> None:
        for notice in notices:
            if isinstance(notice, EmailQueued):
                self._send_first(notice.email_id)

    def _send_first(self, email_id: str) -> None:
        """Send this email before all retries, unless it is already being sent."""
        if not self._closed and email_id != self._in_progress:
            self._due[email_id] = _NEW
            self.wake()

    async def _send_round(self, server: SmtpSender) -> None:
        """Send emails one after another until none is due."""
        try:
            while (email_id := self._next()) is not None:
                await self._attempt(server, email_id)
        finally:
            self._round = None
            server.close()
            self.job.changed()

    def _next(self) -> str | None:
        """Return the id of the next email to send, or None if none is due.

        New emails come first, then the retry that has been due longest. If the outcome for an
        email could not be recorded, return that email first, so that its outcome is recorded before
        another email is sent.
        """
        first = min(self._due, key=lambda id_: self._remaining(self._due[id_]), default=None)
        if self._closed or first is None or self._remaining(self._due[first]) > 0:
            return None
        return first if self._unrecorded is None else self._unrecorded[0]

    async def _attempt(self, server: SmtpSender, email_id: str) -> None:
        self._due.pop(email_id, None)
        self._in_progress = email_id
        try:
            outcome = await self._send(server, email_id)
            delay = await self._record(email_id, outcome)
        finally:
            self._in_progress = None
        is_accepted = outcome.result == "accepted"
        if is_accepted:
            self._is_slow = False
        if waiter := self._waiters.pop(email_id, None):
            waiter.set_result(is_accepted)
        if outcome.result == "unreachable" or self._unrecorded is not None:
            self._postpone()
        # Set this after `_postpone`, so that `_postpone` does not change it.
        if delay is not None:
            self._due[email_id] = self._after(delay)

    async def _send(self, server: SmtpSender, email_id: str) -> Outcome:
        """Render and send an email, and return the outcome. Raises only CancelledError.

        If the outcome of an earlier attempt could not be recorded, send nothing and return that
        outcome.
        """
        if self._unrecorded is not None:
            return self._unrecorded[1]
        try:
            contents = await self._environment.database.read(
                read_contents, self._environment, email_id
            )
            if contents.moot is not None:
                outcome = Outcome("refused", contents.moot)
            elif self._composer.sender is None:
                trouble = SETTINGS_TROUBLE + _("mail.sender is not an address")
                outcome = Outcome("unreachable", trouble)
            else:
                await server.send(await asyncio.to_thread(self._composer.compose, contents))
                return Outcome("accepted")
        except Undelivered as undelivered:
            outcome = undelivered.outcome
        except UnusableAddress:
            outcome = Outcome("refused", "the address cannot be used")
        except Exception as error:  # noqa: BLE001 - the email stays queued
            outcome = Outcome("deferred", f"internal error: {type(error).__name__}")
        log.warning("email: %s was not sent: %s", email_id, outcome.trouble)
        return outcome

    async def _record(self, email_id: str, outcome: Outcome) -> int | None:
        """Record the outcome of an attempt. Return the seconds until the next attempt, or None.

        If the write fails, keep the outcome in memory. No email is sent until it is recorded.
        Otherwise a full disk would cause guests to get the same email again and again.
        """
        try:
            delay = await self._environment.database.write(record_email_attempt, email_id, outcome)
        except Exception as error:  # noqa: BLE001 - any failed write is retried
            name = type(error).__name__
            log.error("email: the outcome for %s was not recorded: %s", email_id, name)  # noqa: TRY400
            self._unrecorded = email_id, outcome
            return RETRY_SECONDS[0]
        self._unrecorded = None
        return delay

    def _after(self, seconds: float) -> tuple[float, int]:
        return self._clock.monotonic() + seconds, self._clock.now() + round(seconds * 1000)

    def _remaining(self, due: tuple[float, int]) -> float:
        """Return the seconds until `due`, on the clock that reaches it first.

        Neither clock is enough: the monotonic clock stops while the machine sleeps, and the wall
        clock can be set back.
        """
        return min(due[0] - self._clock.monotonic(), (due[1] - self._clock.now()) / 1000)

    def _postpone(self) -> None:
        """Postpone emails so that none is due for a minute.

        This limits how often the box tries a mail server that does not work. Calls to `send_now`
        that are waiting return `failed`.
        """
        later = self._after(RETRY_SECONDS[0])
        self._due = {email_id: max(due, later) for email_id, due in self._due.items()}
        self._fail_waiters()

    def _fail_waiters(self) -> None:
        for waiter in self._waiters.values():
            waiter.set_result(False)
        self._waiters.clear()
