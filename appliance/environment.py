"""One environment of the box, live or test: its database, keys, settings and addresses."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

from appliance.core.network import https_base, is_loopback_host, is_public, serves_tls
from appliance.core.settings import ServerSettings, Settings
from appliance.core.tokens import EnvironmentName, Keyring
from appliance.database.database import Database
from appliance.door.live_feed import Feed


@dataclass(slots=True, eq=False)
class Links:
    """The two addresses of an environment: one for guests and partners, one within the venue.

    `address` is where other machines of the venue find the box, over plain http; it changes when
    the network gives the box another one. `app_url` is that of the settings.
    """

    address: str
    app_url: str = ""
    prefix: str = ""

    @property
    def base(self) -> str:
        """What links for guests and partners begin with: `{app_url}` plus the prefix."""
        return f"{self.app_url or self.address}{self.prefix}"

    @property
    def inside(self) -> str:
        """Where the venue's own machines find it: `app_url` only when that is no public one."""
        inside = self.address if is_public(self.app_url) else self.app_url or self.address
        return f"{inside}{self.prefix}"

    def access(self, token: str) -> str:
        """`guestAccessUrl` (interface, section 2.7)."""
        return f"{self.base}/access/{token}"

    def claim(self, token: str) -> str:
        """`claimUrl` (interface, section 2.7)."""
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
        """What its paths begin with: nothing in live, `/test` in test."""
        return path_prefix(self.name)


def house_base(links: Links, server: ServerSettings) -> str:
    """What links for staff and terminals begin with: the box's https address within the venue.

    They work without the internet. No password and no token may travel in the open, and a phone
    lends its camera to https alone; staff devices come to trust the box (`/trust`). A box without
    https of its own has none but the public address. `server` has the host that is listened on.
    """
    inside = urlsplit(links.inside)
    if inside.scheme == "https":
        return links.inside
    host = inside.hostname
    if not host or is_loopback_host(host) or not serves_tls(server.host, server.tls_port):
        return links.base
    return https_base(host, server.tls_port) + inside.path


def terminal_base(links: Links, server: ServerSettings) -> str:
    """The same for terminals; over plain http where `server.allow_http` has tokens travel so."""
    if server.allow_http and not is_loopback_host(urlsplit(links.inside).hostname or ""):
        return links.inside
    return house_base(links, server)


def outside_base(links: Links, server: ServerSettings) -> str:
    """The public address, where it is https and links for staff do not begin with it anyway."""
    is_other = links.base.startswith("https:") and links.base != house_base(links, server)
    return links.base if is_other else ""


def trust_page(links: Links, base: str) -> str:
    """Where a device comes to trust the box, if `base` shows it the box's own certificate."""
    return "" if base in {links.base, links.inside} else f"{links.address}/trust"


def own_version() -> str:
    """`0.1.0`, as it is installed."""
    try:
        return version("venuebox")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "from source"


def path_prefix(name: EnvironmentName) -> str:
    """`""` for live, `"/test"` for test."""
    return "" if name == "live" else "/test"
