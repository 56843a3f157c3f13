"""One environment of the box, live or test: its database, keys, settings and addresses."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from appliance.alone import is_alone, speaks_tls
from appliance.live.feed import Feed
from appliance.settings import ServerSettings, Settings
from appliance.store.database import Database
from appliance.tokens import Keyring

EnvironmentName = Literal["live", "test"]


@dataclass(slots=True, eq=False)
class Links:
    """The addresses that guests are given: `{app_url}` plus the environment's prefix.

    `base` changes when the box is given another address by its network.
    """

    base: str

    def access(self, token: str) -> str:
        """`guestAccessUrl` (contract section 2.7)."""
        return f"{self.base}/access/{token}"

    def claim(self, token: str) -> str:
        """`claimUrl` (contract section 2.7)."""
        return f"{self.base}/claim-guest/{token}"

    def no_reminders(self, token: str) -> str:
        """Where the guest of an access link says that they want no reminders."""
        return f"{self.base}/no-reminders/{token}"

    def undo(self, claim_token: str) -> str:
        """Where a guest cancels, after a tap: for letters."""
        return f"{self.claim(claim_token)}/cancel"


@dataclass(frozen=True, slots=True)
class Environment:
    """What a request in this environment works with."""

    name: EnvironmentName
    database: Database
    keyring: Keyring
    settings: Settings
    links: Links
    feed: Feed

    @property
    def prefix(self) -> str:
        """What its paths begin with: nothing in live, `/test` in test (decisions.md)."""
        return path_prefix(self.name)


def house_base(links: Links, server: ServerSettings) -> str:
    """What links for staff and terminals begin with: https wherever the box speaks it.

    No password and no token may travel in the open, and a phone lends its camera to https alone.
    Their devices come to trust the box (`/trust`); guests' phones do not, and keep `links`.
    """
    if urlsplit(links.base).scheme == "https":
        return links.base
    return find_home_address(links.base, server) or links.base


def find_home_address(app_url: str, server: ServerSettings) -> str:
    """The box's own https address for other machines in the house; nothing where it has none.

    `server` has the host that is listened on, whoever named it.
    """
    base = urlsplit(app_url)
    host = base.hostname or ""
    if not speaks_tls(server.host, server.tls_port) or not host or is_alone(host):
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}:{server.tls_port}{base.path}"


def terminal_base(links: Links, server: ServerSettings) -> str:
    """The same for pairing alone: a house that allows tokens in the open has its reasons."""
    return links.base if server.allow_http else house_base(links, server)


def path_prefix(name: EnvironmentName) -> str:
    """`""` for live, `"/test"` for test."""
    return "" if name == "live" else "/test"
