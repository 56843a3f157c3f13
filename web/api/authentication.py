"""API key authentication: validity, rate limit and scope (interface, section 5)."""

import asyncio
import logging
import re

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
        # When each key's use was last written to the database (monotonic seconds), by key id.
        self._written_at: dict[str, float] = {}
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

    async def close(self) -> None:
        """Wait for pending writes."""
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
        """Write in the background that the key was used, at most once a minute."""
        now = self._clock.monotonic()
        if now - self._written_at.get(key.id, float("-inf")) < _WRITE_SECONDS:
            return
        self._written_at[key.id] = now
        task = asyncio.get_running_loop().create_task(self._write_use(key.id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write_use(self, key_id: str) -> None:
        try:
            await self._environment.database.write(note_key_use, key_id)
        except ApiError as refusal:
            log.warning("api: could not record key use: %s", refusal)
