"""Decide when to obtain a public certificate by ACME, and record the attempts.

The box uses its current certificate until a new one is stored and loaded. Every attempt is recorded
before it begins. A box that keeps restarting therefore stays within the authority's rate limits.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509

from appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from appliance.core.errors import OperatorError
from appliance.core.files import make_folder, read_json, write_json
from appliance.core.network import is_public
from appliance.core.settings import Settings
from appliance.database.connection import Reader
from appliance.database.database import ChangedBeside
from appliance.environment import Environment
from appliance.scheduler import Job, run_in_daemon_thread
from appliance.tls.authority import ends_at, names_in
from appliance.tls.certificates import (
    IMPORTED,
    OBTAINED,
    AcmeError,
    Certificates,
    Order,
    import_certificate,
    read_certificate,
)

log = logging.getLogger(__name__)

REASONS = (
    "dns", "unreached", "caa", "rate_limited", "account", "refused", "no_answer", "dns_hook",
    "unusable",
)  # fmt: skip
# A file with this name requests an immediate attempt. `tls obtain` and the portal's test create it.
REQUESTED = "acme-requested"
_STATE = "acme.json"
_HOURLY = 4  # Let's Encrypt accepts 5 failed attempts per hour
_ATTEMPTS_KEPT = 20
_ATTEMPT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class State:
    """The content of acme.json: the recent attempts and the result of the last one.

    `attempts` are the start times of the attempts since the last success, in ms since 1970. They
    are discarded when the name, directory or challenge changes. `reason` is one of REASONS, or
    empty if the last attempt succeeded or was interrupted.
    """

    subject: tuple[str, ...] = ("", "", "")  # name, directory and challenge
    attempts: tuple[int, ...] = ()
    ended_at: int | None = None  # end of the last attempt that was not interrupted
    reason: str = ""
    detail: str = ""
    obtained_at: int = 0  # when the stored certificate was obtained; 0: it was not
    obtained_from: str = ""  # the URL of the directory from which it was obtained
    account: str = ""  # the URI of the account at this directory

    def retry_at(self) -> int:
        """Return the earliest time for the next attempt, in ms since 1970.

        Returns 0 if there was no attempt since the last success. The delay is 5 min after the first
        failure, then 20 min, 80 min and so on, up to 24 h. If the authority's rate limit was
        reached, the delay is 24 h.
        """
        if not self.attempts:
            return 0
        wait = min(5 * MINUTE_MS * 4 ** (len(self.attempts) - 1), DAY_MS)
        return self.attempts[-1] + (DAY_MS if self.reason == "rate_limited" else wait)


@dataclass(frozen=True, slots=True)
class Plan:
    """Whether and when to obtain a certificate for `name`.

    `name` is empty if `server.app_url` has no public host name, or if ACME is off. If `rests` is
    True, an imported certificate is used for the name, so none is obtained.
    """

    name: str
    state: State
    rests: bool
    renew_at: int = 0  # in ms since 1970; 0 if there is no certificate for the name yet
    ends_at: int = 0  # when this certificate expires, in ms since 1970

    def due(self, now: int) -> int | None:
        """Return when the next attempt is due, in ms since 1970, or None if none is planned."""
        if self.rests or not self.name:
            return None
        # If the clock was set back, ignore earlier attempts, which may now lie in the future.
        retry = self.state.retry_at() if max(self.state.attempts, default=0) <= now else 0
        # With a wrong clock, even a new certificate may seem due for renewal. So wait for a day.
        obtained = self.state.obtained_at
        pause = obtained + DAY_MS if self.renew_at and 0 < obtained <= now else 0
        return max(self.renew_at, retry, pause)

    def may_ask(self, now: int) -> bool:
        """Whether another attempt now would stay below the rate limits."""
        return sum(now - HOUR_MS < at <= now for at in self.state.attempts) < _HOURLY


def public_name(app_url: str) -> str:
    """Return the public host name in `app_url`, for which guests need a public certificate.

    Return "" if the URL is not https or has no public host name.
    """
    parts = urlsplit(app_url)
    host = (parts.hostname or "").rstrip(".")
    is_name = host.isascii() and not host.rpartition(".")[2].isdigit() and ":" not in host
    return host if parts.scheme == "https" and is_public(app_url) and is_name else ""


def read_plan(folder: Path, settings: Settings) -> Plan:
    """Return the plan for these settings and for the certificates and state in the tls folder."""
    acme = settings.acme
    name = public_name(settings.server.app_url) if acme.directory else ""
    subject = (name, acme.directory, acme.challenge)
    state = read_state(folder)
    imported, obtained = (read_certificate(folder / file) for file in (IMPORTED, OBTAINED))
    certificate = None
    # Ignore a certificate from another directory, such as a test authority's, so that a new one is
    # obtained.
    is_current = state.obtained_from in {"", acme.directory}
    if obtained is not None and is_current and names_in(obtained).cover(name):
        certificate = obtained
    if state.subject != subject:
        account = state.account if is_current else ""
        kept = State(account=account, obtained_from=state.obtained_from)
        state = replace(kept, subject=subject, obtained_at=state.obtained_at)
    rests = imported is not None and names_in(imported).cover(name)
    if certificate is None:
        return Plan(name, state, rests)
    return Plan(name, state, rests, _renew_at(certificate), ends_at(certificate))


def read_state(folder: Path) -> State:
    """Return the stored state, or an empty state if the file is missing or cannot be read."""
    return read_json(folder / _STATE, State) or State()


def _write_state(folder: Path, state: State) -> None:
    make_folder(folder)
    write_json(folder / _STATE, state)


def _renew_at(certificate: x509.Certificate) -> int:
    """Return when to renew, in ms since 1970: after 2/3 of the lifetime, or a little earlier.

    The result is up to 1/20 of the lifetime earlier than that, depending on the serial number.
    Boxes that were installed together therefore renew at different times, and a restart does not
    change the time.
    """
    lifetime = _lifetime(certificate)
    digest = sha256(str(certificate.serial_number).encode()).digest()
    return ends_at(certificate) - lifetime // 3 - lifetime // 20 * digest[0] // 256


def _lifetime(certificate: x509.Certificate) -> int:
    return ends_at(certificate) - round(certificate.not_valid_before_utc.timestamp() * 1000)


class Acme:
    """Obtains and renews the public certificate in `certificates`, as a job of the scheduler."""

    def __init__(
        self,
        environment: Environment,
        certificates: Certificates,
    ) -> None:
        self._environment, database = environment, environment.database
        self._certificates = certificates
        self._folder = certificates.folder
        self._database = database
        self._plan: Plan | None = None  # None if the files must be read again
        self._is_requested = False
        self.job = Job(
            "the public certificate", database, self._next_due, self._run, needs_clock=True
        )
        database.on_commit(self._on_command, ChangedBeside)

    def _on_command(self, _notices: Sequence[object]) -> None:
        """Read the files again.

        A command may have imported a certificate or requested an attempt.
        """
        self._plan = None
        self.job.changed()

    def _next_due(self, reader: Reader) -> int | None:
        if self._plan is None:
            self._is_requested = (self._folder / REQUESTED).exists()
            self._plan = read_plan(self._folder, self._environment.settings)
        due = self._plan.due(reader.now)
        return 0 if self._is_requested and due is not None else due

    async def _run(self) -> None:
        """Make one attempt and record its result.

        The start time is recorded first, so an interrupted attempt counts as well.
        """
        now = self._database.clock.now
        plan = await asyncio.to_thread(read_plan, self._folder, self._environment.settings)
        if plan.due(now()) is None:
            return
        attempts = (*(at for at in plan.state.attempts if at <= now()), now())[-_ATTEMPTS_KEPT:]
        state = replace(plan.state, attempts=attempts, reason="", detail="")
        await asyncio.to_thread(self._begin, state)
        self._plan = None
        try:
            account = await self._attempt(plan.name)
        except AcmeError as failed:
            log.warning(
                "acme: no certificate for %s (%s): %s", plan.name, failed.reason, failed.detail
            )
            state = replace(state, reason=failed.reason, detail=failed.detail)
        else:
            log.info("acme: obtained a certificate for %s", plan.name)
            directory = self._environment.settings.acme.directory
            state = replace(
                state, attempts=(), obtained_at=now(), account=account, obtained_from=directory
            )
        state = replace(state, ended_at=now())
        await asyncio.to_thread(_write_state, self._folder, state)
        self._plan = None

    def _begin(self, state: State) -> None:
        _write_state(self._folder, state)
        (self._folder / REQUESTED).unlink(missing_ok=True)

    async def _attempt(self, name: str) -> str:
        """Obtain a certificate, store it and load it. Return the account's URI.

        Raises AcmeError.
        """
        certificates, folder = self._certificates, self._folder
        order = partial(self._order, name)
        try:
            async with asyncio.timeout(_ATTEMPT_SECONDS):
                with certificates.challenges.answering(certificates.context):
                    chain, key, account = await run_in_daemon_thread(order)
            store = partial(import_certificate, file=OBTAINED, name=name)
            await asyncio.to_thread(store, folder, chain, key, self._database.clock.now())
            certificates.load()
        except TimeoutError:
            raise AcmeError("no_answer", "the order was not completed in time") from None
        except (OperatorError, OSError) as error:
            raise AcmeError("unusable", str(error)) from None
        return account

    def _order(self, name: str) -> tuple[bytes, bytes, str]:
        # Import the library only when it is needed: it takes half a second and a lot of memory.
        from appliance.tls.acme_client import obtain  # noqa: PLC0415

        acme, challenges = self._environment.settings.acme, self._certificates.challenges
        return obtain(Order(acme, name, self._folder, challenges))
