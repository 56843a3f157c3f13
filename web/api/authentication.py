"""API key authentication: validity, rate limit and scope (interface, section 5)."""

import asyncio
import logging
import re
from collections.abc import Sequence

from aiohttp import web

from appliance.api_keys import ApiKey, find_key_by_hash, note_key_use
from appliance.clock import Clock
from appliance.core.errors import ApiError, KeyRevoked, OtherEnvironment, ScopeMissing, Unauthorized
from appliance.core.tokens import hash_token
from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit
from appliance.http.request import CALLER_OF, RECHECK_AUTHORISATION

log = logging.getLogger(__name__)

KEY: web.RequestKey[ApiKey] = web.RequestKey("key", ApiKey)
SPENT: web.RequestKey[tuple[RateLimit, str, str]] = web.RequestKey("spent", tuple)
"""The limit that a call counts against, the caller, and the name of the limit."""
BUDGETS = ("key", "deliveries")  # each of a key's rates
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(svc_(live|test)_[0-9a-f]{48}) *")
_WRITE_SECONDS = 60.0


class Gate:
    """Authenticates callers of an environment's partner API."""

    def __init__(self, environment: Environment, clock: Clock) -> None:
        api = environment.settings.api
        self._environment = environment
        self._clock = clock
        self._key_limits = {name: RateLimit(clock, api.rate_limit_per_minute) for name in BUDGETS}
        self._address_limit = RateLimit(clock, api.unauthenticated_per_minute)
        # When each key's calls were last written to the database (monotonic seconds), by key id.
        self._written_at: dict[str, float] = {}
        # Unwritten calls by key id: the time of the first (ms since 1970), and the number of calls.
        self._unwritten: dict[str, tuple[int, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def admit(self, request: web.Request, scope: str, budget: str) -> ApiKey:
        """Return the request's key and count the call against `budget`, a name in `BUDGETS`.

        Calls without a valid key are counted against the caller's address. Raises Unauthorized,
        OtherEnvironment or KeyRevoked if the key is not valid here, RateLimited after too many
        calls, and ScopeMissing if the key lacks `scope`. Every key has the scope "".
        """
        try:
            key = self._identify(request)
        except (Unauthorized, KeyRevoked):
            caller = request.app[CALLER_OF](request)
            request[SPENT] = (self._address_limit, caller, "address")
            self._address_limit.spend(caller)
            raise
        limit = self._key_limits[budget]
        request[SPENT] = (limit, key.id, budget)
        limit.spend(key.id)
        if scope and scope not in key.scopes:
            raise ScopeMissing(scope=scope)
        request[RECHECK_AUTHORISATION] = self._identify
        self._remember_use(key)
        return key

    def unwritten(self, key_id: str) -> int:
        """Return the number of calls with a key that have not yet been written to the database."""
        return self._unwritten.get(key_id, (0, 0))[1]

    async def close(self) -> None:
        """Write the remaining call counts and wait for pending writes."""
        for key_id, count in self._unwritten.items():
            self._write_soon(key_id, [count], just_now=False)
        self._unwritten.clear()
        await asyncio.gather(*self._tasks)

    def _identify(self, request: web.Request) -> ApiKey:
        match = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        if match and match.group(2) != self._environment.name:
            raise OtherEnvironment
        database = self._environment.database
        key = match and database.look_up(find_key_by_hash, hash_token(match.group(1)))
        if key is None:
            raise Unauthorized
        if key.is_revoked(database.clock.now()):
            raise KeyRevoked
        return key

    def _remember_use(self, key: ApiKey) -> None:
        """Count a call with `key`.

        A key's count is written to the database at most once a minute. Calls in between are counted
        in memory.
        """
        now = self._clock.monotonic()
        if now - self._written_at.get(key.id, float("-inf")) < _WRITE_SECONDS:
            since, calls = self._unwritten.get(key.id, (self._clock.now(), 0))
            self._unwritten[key.id] = (since, calls + 1)
            return
        self._written_at[key.id] = now
        counts = [self._unwritten.pop(key.id)] if key.id in self._unwritten else []
        self._write_soon(key.id, [*counts, (self._clock.now(), 1)], just_now=True)

    def _write_soon(
        self, key_id: str, counts: Sequence[tuple[int, int]], *, just_now: bool
    ) -> None:
        """Write `counts` in a background task. If `just_now`, also set `last_used_at` to now."""

        async def write() -> None:
            try:
                database = self._environment.database
                await database.write(note_key_use, key_id, counts, just_now=just_now)
            except ApiError as refusal:
                log.warning("api: could not record key use: %s", refusal)

        task = asyncio.get_running_loop().create_task(write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
