"""The bridge's identity, and its HTTP client for the box."""

import asyncio
import base64
import json
import os
import ssl
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp

from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write

SCAN_SECONDS = 2.0
CALL_SECONDS = 10.0
_WRONG_CERTIFICATE = aiohttp.ClientConnectorCertificateError
_SILENT_SECONDS = 60.0  # the box sends a heartbeat every 20 s
_HEARTBEAT = b":"


class OutOfReach(Exception):
    """The box sent no usable response in time. It may still have processed the request."""


class NotPaired(Exception):
    """This bridge is not paired with the box, or the box has revoked its token (401)."""


class Refused(Exception):
    """The box rejected the request (4xx). A retry would be rejected too.

    The message is in English; `sentence` says the same to the staff.
    """

    def __init__(self, message: str, sentence: str) -> None:
        super().__init__(message)
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Identity:
    """The bridge's identity, as stored in `bridge.json`.

    `box` is the environment's base URL, without a trailing slash. `keys` are pairs of key id and
    base64url Ed25519 public key. `ca` is a PEM certificate, empty if the box uses plain http or a
    public certificate.
    """

    box: str
    ca: str = ""
    token: str = ""
    terminal: str = ""
    language: str = "fr"
    venue_tag: str = ""
    time_zone: str = "Africa/Casablanca"
    evening_ends_at: str = "06:00"
    keys: tuple[tuple[int, str], ...] = ()

    @property
    def environment(self) -> str:
        """Return "test" if the base URL ends in /test, else "live"."""
        return "test" if self.box.endswith("/test") else "live"

    def public_key(self, kid: int) -> bytes | None:
        """Return the 32-byte public key with id `kid`, or None if it is unknown."""
        text = dict(self.keys).get(kid)
        return None if text is None else base64.urlsafe_b64decode(text + "=")

    def introduced(self, me: dict[str, Any]) -> "Identity":
        """Return a copy with the terminal, venue and keys from `me`, a response to `GET /me`."""
        terminal, venue = me["terminal"], me["venue"]
        return replace(
            self, terminal=terminal["name"], language=terminal["language"],
            venue_tag=venue["tag"], time_zone=venue["timeZone"],
            evening_ends_at=venue["eveningEndsAt"],
            keys=tuple((key["kid"], key["publicKey"]) for key in me["publicKeys"]),
        )  # fmt: skip

    def save(self, folder: Path) -> None:
        """Write `bridge.json`. Only its owner may read it, because it contains the token."""
        atomic_write(folder / "bridge.json", json.dumps(asdict(self), indent=1).encode())


def load_identity(folder: Path) -> Identity | None:
    """Load `bridge.json` from `folder`. Return None if it is missing.

    Raises OperatorError if the file is unreadable or invalid.
    """
    path = folder / "bridge.json"
    try:
        saved = json.loads(path.read_text("utf-8"))
        keys = tuple((int(kid), str(key)) for kid, key in saved.pop("keys"))
        return Identity(**saved, keys=keys)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise OperatorError(f"{path} cannot be read. Pair this bridge again with --pair.") from None


def parse_box(url: str) -> str:
    """Return `url` without a trailing slash. Raises OperatorError if it is not a base URL."""
    base = url.strip().rstrip("/")
    parts = urlsplit(base)
    plain = not (parts.query or parts.fragment or parts.username) and parts.path in {"", "/test"}
    if parts.scheme not in {"http", "https"} or not parts.hostname or not plain:
        raise OperatorError(
            "--box must be the box's address alone, such as https://192.168.1.20:8443, with /test"
            f" for the test environment, not {url!r}"
        )
    return base


class BoxClient:
    """Asynchronous client for the terminal protocol.

    Every call except `listen` may raise OutOfReach, NotPaired or Refused.
    """

    def __init__(self, identity: Identity) -> None:
        """Prepare TLS. Raises OperatorError if the identity's `ca` is not a certificate."""
        self.identity = identity
        self._ssl = _make_ssl(identity)
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._ssl, limit=4, keepalive_timeout=20.0),
            headers={"Authorization": f"Bearer {self.identity.token}"},
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._session.close()

    async def pair(self, code: str, name: str | None) -> dict[str, Any]:
        """Send `POST /pair` and return the response."""
        return await self._call("POST", "/pair", {"code": code} | ({"name": name} if name else {}))

    async def me(self) -> dict[str, Any]:
        """Send `GET /me` and return the response."""
        return await self._call("GET", "/me")

    async def scan(self, body: dict[str, Any]) -> dict[str, Any]:
        """Send `POST /scans` and return the verdict. A guest is waiting, so the deadline is 2 s."""
        return await self._call("POST", "/scans", body, SCAN_SECONDS)

    async def sync(self, scans: list[dict[str, Any]], sent_at: str) -> list[dict[str, Any]]:
        """Send `POST /sync` and return the box's verdicts.

        `sent_at` is the bridge's current time.
        """
        answer = await self._call("POST", "/sync", {"sentAt": sent_at, "scans": scans})
        results: list[dict[str, Any]] = answer["results"]
        return results

    async def snapshot(self) -> dict[str, Any]:
        """Send `GET /snapshot` and return the payload, key id and signature."""
        return await self._call("GET", "/snapshot")

    async def listen(self, on_change: Callable[[], None]) -> None:
        """Read `GET /events` until it ends, and call `on_change` after each event."""
        try:
            async with self._session.get(
                f"{self.identity.box}/terminal/v1/events",
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_read=_SILENT_SECONDS),
            ) as response:
                async for chunk in response.content.iter_any():
                    if response.status == 200 and not chunk.startswith(_HEARTBEAT):
                        on_change()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return

    async def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None,
        seconds: float = CALL_SECONDS,
    ) -> dict[str, Any]:  # fmt: skip
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.request(
                    method,
                    f"{self.identity.box}/terminal/v1{path}",
                    json=body,
                    allow_redirects=False,
                ) as response,
            ):
                status, raw = response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise OutOfReach(_describe(error)) from None
        return _parse_response(status, raw)


def _parse_response(status: int, raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a 2xx response.

    Raises OutOfReach for 3xx, 5xx or a body that is not a JSON object, NotPaired for 401, and
    Refused for any other 4xx.
    """
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or status >= 500 or 300 <= status < 400:
        raise OutOfReach(f"the box returned status {status}")
    if status == 401:
        raise NotPaired(str(answer.get("error_en", "this bridge is not paired with the box")))
    if status >= 400:
        message = str(answer.get("error_en", f"the box returned status {status}"))
        raise Refused(message, str(answer.get("error", message)))
    return answer


def _make_ssl(identity: Identity) -> ssl.SSLContext | bool:
    if not identity.ca:
        return True
    try:
        return ssl.create_default_context(cadata=identity.ca)
    except ssl.SSLError:
        raise OperatorError(
            "--ca contains no certificate. Specify the box's authority in PEM format."
        ) from None


def _describe(error: Exception) -> str:
    if isinstance(error, _WRONG_CERTIFICATE):
        reason = getattr(error, "certificate_error", None)
        why = f" ({reason.verify_message})" if isinstance(reason, ssl.CertificateError) else ""
        return (
            f"the box's certificate is not trusted{why}. Start the bridge once with --ca and the"
            " box's authority"
        )
    if isinstance(error, TimeoutError):
        return "the box did not respond in time"
    if isinstance(error, aiohttp.ClientSSLError):
        return "this port of the box does not speak https"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the box closed the connection"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the box's name has no address"
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
    return f"the box cannot be reached ({reason})"
