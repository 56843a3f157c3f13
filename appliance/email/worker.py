"""Send queued emails and retry failed emails.

The queue is the table `email`. The worker sends one email at a time, and records its outcome
before it sends the next. After a crash, at most one email is sent twice, with the same Message-ID.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from appliance.core.errors import Unavailable
from appliance.core.i18n import mark as _
from appliance.core.settings import Settings
from appliance.database.connection import Reader, Transaction
from appliance.email.rendering import Composer, UnusableAddress, read_contents
from appliance.email.smtp import SmtpSender, Undelivered
from appliance.environment import Environment
from appliance.reservations.email_queue import (
    SETTINGS_TROUBLE,
    EmailQueued,
    Outcome,
    find_due_email,
    find_email,
    get_email,
    next_email_due_at,
    postpone_emails,
    retry_delay,
)
from appliance.reservations.model import evening_is_over
from appliance.reservations.rows import get_reservation
from appliance.scheduler import Job

log = logging.getLogger(__name__)

_LONGEST_RETRY = 60.0  # maximum delay in seconds between attempts to record an outcome


def record_email_attempt(tx: Transaction, email_id: str, outcome: Outcome) -> None:
    """Record an attempt to send an email, and set when to try again.

    An email is retried until the reservation's evening is over. Only an email that is still waiting
    is changed, so an outcome that is recorded twice counts once. If the mail server fails or the
    mail settings are wrong, no other waiting email is tried for a minute.
    """
    email = find_email(tx, email_id)
    if email is None or email.state != "waiting":
        return
    if outcome.result == "unreachable":
        postpone_emails(tx)
    attempts = email.attempts + 1
    attempt = {"attempts": attempts, "trouble": outcome.trouble}
    if outcome.result == "accepted":
        tx.update("email", email_id, state="sent", sent_at=tx.now, **attempt)
        return
    due_at = tx.now + retry_delay(attempts)
    reservation = get_reservation(tx, email.reservation_id)
    if outcome.result == "refused" or evening_is_over(tx, reservation, due_at):
        tx.update("email", email_id, state="failed", **attempt)
        return
    tx.update("email", email_id, due_at=due_at, **attempt)


def resume_emails(tx: Transaction) -> None:
    """Immediately retry the emails that could not be sent because of the mail settings.

    The owner may have corrected the settings.
    """
    sql = "UPDATE email SET due_at = :now WHERE state = 'waiting' AND trouble LIKE :trouble"
    tx.execute(sql, {"now": tx.now, "trouble": f"{SETTINGS_TROUBLE}%"})


class EmailWorker:
    """Sends one environment's emails. Use it only in the event loop that started it."""

    answer_within = 5.0  # maximum time that a booking request waits for its email, in seconds

    def __init__(self, environment: Environment, server: SmtpSender | None = None) -> None:
        """Create a worker. `server` defaults to the mail server in the settings.

        If no mail server is configured, emails stay queued. The test environment sends no email.
        """
        self._environment, self._given = environment, server
        self.follow(environment.settings)
        # The futures that `send_now` waits for. The result is true if the email was accepted.
        self._waiters: dict[str, asyncio.Future[bool]] = {}
        # An email and the outcome of its last attempt, until the outcome is recorded.
        self._unrecorded: tuple[str, Outcome] | None = None
        self._round: asyncio.Task[None] | None = None
        self._is_slow = self._closed = False
        self.job = Job(
            f"{environment.name}: emails", environment.database, self._next_due,
            self._send_due_emails, longest_retry=_LONGEST_RETRY,
        )  # fmt: skip

    def follow(self, settings: Settings) -> None:
        """Send by the mail server in `settings` from now on."""
        mail, server = settings.mail, self._given
        if self._environment.name != "live":
            server = None
        elif server is None and mail.host:
            server = SmtpSender(mail)
        self._server = server
        self._composer = Composer(mail.sender)

    async def start(self) -> None:
        """Start listening for new emails, and call `resume_emails`."""
        self._environment.database.on_commit(self._on_commit)
        if self._server is not None:
            with suppress(Unavailable):  # the disk may be full
                await self._environment.database.write(resume_emails)

    async def send_now(self, email_id: str) -> Literal["sent", "failed"]:
        """Send an email, and wait up to 5 s for the mail server to accept it.

        The result `failed` does not cancel the email. A slow attempt continues, and a failed
        attempt is retried. After a timeout, later calls return `failed` without waiting, until the
        server accepts an email.
        """
        try:
            email = self._environment.database.peek(get_email, email_id)
        except Unavailable:
            return "failed"
        if email.state in {"sent", "kept"}:
            return "sent"
        if email.state != "waiting" or self._server is None or self._closed or self._is_slow:
            return "failed"
        new_waiter = asyncio.get_running_loop().create_future()
        waiter = self._waiters.setdefault(email_id, new_waiter)
        self.wake()
        done, _ = await asyncio.wait([waiter], timeout=self.answer_within)
        if not done:
            self._is_slow = True
        return "sent" if done and waiter.result() else "failed"

    def wake(self) -> None:
        """Start sending the emails that are due, unless sending is in progress."""
        if self._server is not None and self._round is None and not self._closed:
            self._round = asyncio.get_running_loop().create_task(self._send_round(self._server))

    def _next_due(self, reader: Reader) -> int | None:
        return next_email_due_at(reader) if self._server is not None else None

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
        if any(isinstance(notice, EmailQueued) for notice in notices):
            self.wake()

    async def _send_round(self, server: SmtpSender) -> None:
        """Send emails one after another until none is due.

        Calls to `send_now` that are still waiting at the end return `failed`.
        """
        try:
            while not self._closed and server is self._server:
                if self._unrecorded is None:
                    email_id = self._environment.database.peek(find_due_email)
                    if email_id is None:
                        break
                    self._unrecorded = email_id, await self._send(server, email_id)
                if not await self._record(*self._unrecorded):
                    break
        finally:
            self._round = None
            server.close()
            self._fail_waiters()

    async def _send(self, server: SmtpSender, email_id: str) -> Outcome:
        """Render and send an email, and return the outcome. Raises only CancelledError."""
        try:
            contents = await self._environment.database.read(
                read_contents, self._environment, email_id
            )
            if contents.moot is not None:
                outcome = Outcome("refused", contents.moot)
            elif self._composer.sender is None:
                trouble = SETTINGS_TROUBLE + _("the sender is not an email address")
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

    async def _record(self, email_id: str, outcome: Outcome) -> bool:
        """Record the outcome of an attempt. Return whether this succeeded.

        If the write fails, keep the outcome in memory. No email is sent until it is recorded.
        Otherwise, while the disk is full, guests would get the same email again and again.
        """
        try:
            await self._environment.database.write(record_email_attempt, email_id, outcome)
        except Exception as error:  # noqa: BLE001 - any failed write is retried
            name = type(error).__name__
            log.error("email: the outcome for %s was not recorded: %s", email_id, name)  # noqa: TRY400
            return False
        self._unrecorded, is_accepted = None, outcome.result == "accepted"
        if is_accepted:
            self._is_slow = False
        if waiter := self._waiters.pop(email_id, None):
            waiter.set_result(is_accepted)
        return True

    def _fail_waiters(self) -> None:
        for waiter in self._waiters.values():
            waiter.set_result(False)
        self._waiters.clear()
