"""The bridge's calls to the box: each has a deadline, and an outcome that tells what to do."""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Any, Self

import aiohttp

from appliance.errors import Trouble
from terminal_bridge.bridge.identity import Identity

SCAN_SECONDS = 2.0
OTHERWISE_SECONDS = 10.0
_SILENT_SECONDS = 60.0  # the feed has a heartbeat every 20 s
_HEARTBEAT = b":"


class OutOfReach(Exception):
    """The box did not answer in time, or said that it cannot: nothing is known of the outcome."""


class NotPaired(Exception):
    """The box does not know this bridge, or not any more."""


class Refused(Exception):
    """The box refused the request for a reason that another try does not change."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class BoxClient:
    """The terminal protocol, from the terminal's side. An async context."""

    def __init__(self, identity: Identity) -> None:
        """Trouble when the identity's certificate is none."""
        self.identity = identity
        self._ssl = _trust(identity)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._ssl, limit=4, keepalive_timeout=20.0),
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def pair(self, code: str, name: str | None) -> dict[str, Any]:
        """`POST /pair`."""
        return await self._call("POST", "/pair", {"code": code} | ({"name": name} if name else {}))

    async def me(self) -> dict[str, Any]:
        """`GET /me`."""
        return await self._call("GET", "/me")

    async def scan(self, body: dict[str, Any]) -> dict[str, Any]:
        """`POST /scans`, within two seconds: somebody is standing at the door."""
        return await self._call("POST", "/scans", body, SCAN_SECONDS)

    async def sync(self, scans: list[dict[str, Any]], sent_at: str) -> list[dict[str, Any]]:
        """`POST /sync`: the box's verdict on each. `sent_at` is what the bridge's clock says."""
        answer = await self._call("POST", "/sync", {"sentAt": sent_at, "scans": scans})
        results: list[dict[str, Any]] = answer["results"]
        return results

    async def snapshot(self) -> dict[str, Any]:
        """`GET /snapshot`: payload, key id and signature."""
        return await self._call("GET", "/snapshot")

    async def listen(self, heard: Callable[[], None]) -> None:
        """`GET /events`: call `heard` when something has changed, until the feed ends."""
        assert self._session is not None  # noqa: S101 - used as a context
        try:
            async with self._session.get(
                f"{self.identity.box}/terminal/v1/events",
                allow_redirects=False,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_read=_SILENT_SECONDS),
            ) as response:
                async for chunk in response.content.iter_any():
                    if response.status == 200 and not chunk.startswith(_HEARTBEAT):
                        heard()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.identity.token}"}

    async def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        within: float = OTHERWISE_SECONDS,
    ) -> dict[str, Any]:
        assert self._session is not None  # noqa: S101 - used as a context
        try:
            async with (
                asyncio.timeout(within),
                self._session.request(
                    method,
                    f"{self.identity.box}/terminal/v1{path}",
                    json=body,
                    headers=self._headers,
                    allow_redirects=False,
                ) as response,
            ):
                status, raw = response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise OutOfReach(_describe(error)) from None
        return _judge(status, raw)


def _judge(status: int, raw: bytes) -> dict[str, Any]:
    """A gateway's or a broken box's answer decides nothing."""
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or status >= 500 or 300 <= status < 400:
        raise OutOfReach(f"the box answered {status}")
    if status == 401:
        raise NotPaired(str(answer.get("error_en", "the box does not know this bridge")))
    if status >= 400:
        raise Refused(status, str(answer.get("error", f"the box answered {status}")))
    return answer


def _trust(identity: Identity) -> ssl.SSLContext | aiohttp.Fingerprint | bool:
    if identity.pin:
        return aiohttp.Fingerprint(bytes.fromhex(identity.pin))
    if not identity.ca:
        return True
    try:
        return ssl.create_default_context(cadata=identity.ca)
    except ssl.SSLError:
        raise Trouble("--ca holds no certificate: give the box's own in PEM form") from None


def _describe(error: Exception) -> str:
    if isinstance(
        error, (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch)
    ):
        return "the box's certificate is not the one this bridge was given"
    if isinstance(error, TimeoutError):
        return "the box did not answer in time"
    return f"the box cannot be reached ({type(error).__name__})"
