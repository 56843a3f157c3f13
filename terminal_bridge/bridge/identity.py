"""What a bridge keeps of its pairing: where the box is, its own token, and the box's keys."""

import base64
import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from appliance.durable import atomic_write
from appliance.errors import Trouble

_PIN = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Identity:
    """The content of `bridge.json`. `keys` are the box's Ed25519 public keys by their id.

    `box` is the base of the environment, without a slash at its end. `ca` is a certificate's
    text, `pin` the SHA-256 of one in hex; both empty for plain http and for public ones.
    """

    box: str
    ca: str = ""
    pin: str = ""
    token: str = ""
    terminal: str = ""
    language: str = "fr"
    venue_tag: str = ""
    time_zone: str = "Africa/Casablanca"
    evening_ends_at: str = "06:00"
    keys: tuple[tuple[int, str], ...] = ()

    @property
    def environment(self) -> str:
        """live, or test for a base that ends in /test."""
        return "test" if self.box.endswith("/test") else "live"

    def public_key(self, kid: int) -> bytes | None:
        """The 32 bytes that verify what the box signed under `kid`."""
        text = dict(self.keys).get(kid)
        return None if text is None else base64.urlsafe_b64decode(text + "=")

    def introduced(self, me: dict[str, Any]) -> "Identity":
        """With what `GET /me` tells of the terminal, the venue and the keys."""
        return replace(
            self,
            terminal=me["terminal"]["name"],
            language=me["terminal"]["language"],
            venue_tag=me["venue"]["tag"],
            time_zone=me["venue"]["timeZone"],
            evening_ends_at=me["venue"]["eveningEndsAt"],
            keys=tuple((key["kid"], key["publicKey"]) for key in me["publicKeys"]),
        )

    def save(self, folder: Path) -> None:
        """Write it, readable by its owner alone: whoever has the token is this bridge."""
        atomic_write(folder / "bridge.json", json.dumps(asdict(self), indent=1).encode())


def load_identity(folder: Path) -> Identity | None:
    """What was saved in `folder`, or None; Trouble when it cannot be read."""
    path = folder / "bridge.json"
    try:
        kept = json.loads(path.read_text("utf-8"))
        keys = tuple((int(kid), str(key)) for kid, key in kept.pop("keys"))
        return Identity(**kept, keys=keys)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise Trouble(f"{path} cannot be read: pair this bridge again with --pair") from None


def parse_box(url: str) -> str:
    """The base address; Trouble when it is none."""
    base = url.strip().rstrip("/")
    parts = urlsplit(base)
    plain = not (parts.query or parts.fragment or parts.username)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not plain:
        raise Trouble(f"--box is {url!r}: an address such as https://box.local is allowed")
    return base


def parse_pin(text: str) -> str:
    """A fingerprint in hex, with or without colons; Trouble when it is none."""
    pin = text.replace(":", "").strip().lower()
    if not _PIN.fullmatch(pin):
        raise Trouble("--pin must be the SHA-256 of the box's certificate: 64 hex digits")
    return pin
