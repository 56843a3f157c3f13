"""One of the box's environments, live or test: its database, keys, settings and addresses."""

from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

from appliance.core.network import https_base, is_loopback_host, is_public, serves_tls
from appliance.core.settings import ServerSettings, Settings
from appliance.core.tokens import EnvironmentName, Keyring
from appliance.database.database import Database
from appliance.door.live_feed import Feed


@dataclass(slots=True, eq=False)
class Links:
    """The base URLs of an environment, and the links made from them.

    `address` is the box's plain http URL on the local network; it changes when the network
    assigns another address. `app_url` is the setting `server.app_url`. `others` are the box's URLs
    in further networks, if it cannot determine which one is the venue's.
    """

    address: str
    app_url: str = ""
    prefix: str = ""
    others: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The base URL for guests and partners, including the prefix.

        Uses `app_url` if it is set.
        """
        return f"{self.app_url or self.address}{self.prefix}"

    @property
    def inside(self) -> str:
        """The base URL on the local network, including the prefix.

        Uses `app_url` if it is set and not public. Otherwise, uses `address`.
        """
        inside = self.address if is_public(self.app_url) else self.app_url or self.address
        return f"{inside}{self.prefix}"

    def portal(self, reservation_id: str) -> str:
        """Return the URL of a reservation in the portal, for staff."""
        return f"{self.base}/portal/reservations/{reservation_id}"

    def access(self, token: str) -> str:
        """Return the `guestAccessUrl` (interface, section 2.7)."""
        return f"{self.base}/access/{token}"

    def claim(self, token: str) -> str:
        """Return the `claimUrl` (interface, section 2.7)."""
        return f"{self.base}/claim-guest/{token}"

    def no_reminders(self, token: str) -> str:
        """Return the URL where the guest with this access token unsubscribes from reminders."""
        return f"{self.base}/no-reminders/{token}"

    def undo(self, claim_token: str) -> str:
        """Return the URL of the page on which the guest can cancel. Emails contain this URL."""
        return f"{self.claim(claim_token)}/cancel"


@dataclass(slots=True, eq=False)
class Environment:
    """The database, keys, settings and links of one environment.

    Read `settings` again each time: `Box.apply` changes them while the box runs.
    """

    name: EnvironmentName
    database: Database
    keyring: Keyring
    settings: Settings
    links: Links
    feed: Feed

    @property
    def prefix(self) -> str:
        """The path prefix: `""` for live, `"/test"` for test."""
        return path_prefix(self.name)


def staff_base(links: Links, server: ServerSettings) -> str:
    """Return the base URL for staff and terminal links, with https on the local network.

    These links work without the internet. They use https, because passwords and tokens are sent to
    these addresses, and because browsers allow the camera only with https. Staff devices install
    the box's certificate from `/trust`. If the box does not serve https, returns `links.base`.
    """
    inside = urlsplit(links.inside)
    if inside.scheme == "https":
        return links.inside
    host = inside.hostname
    if not host or is_loopback_host(host) or not serves_tls(server.host, server.tls_port):
        return links.base
    return https_base(host, server.tls_port) + inside.path


def terminal_base(links: Links, server: ServerSettings) -> str:
    """Return the base URL for terminal links, which uses http if `server.allow_http` is set."""
    if server.allow_http and not is_loopback_host(urlsplit(links.inside).hostname or ""):
        return links.inside
    return staff_base(links, server)


def other_terminal_bases(links: Links, server: ServerSettings) -> list[str]:
    """Return the base URLs for terminal links at the box's other addresses on the LAN."""
    moved = (replace(links, address=address) for address in links.others)
    bases = dict.fromkeys(terminal_base(each, server) for each in moved)
    return [base for base in bases if base != terminal_base(links, server)]


def public_base(links: Links, server: ServerSettings) -> str:
    """Return the public https base URL for staff.

    Returns `""` if there is none, if it equals `staff_base`, or if `server.public_portal` is off.
    """
    if not server.public_portal:
        return ""
    is_other = links.base.startswith("https:") and links.base != staff_base(links, server)
    return links.base if is_other else ""


def trust_page(links: Links, base: str) -> str:
    """Return the URL of the page where staff install the box's certificate.

    It is plain http. Returns `""` if the base URL `base` does not use that certificate.
    """
    if base in {links.base, links.inside}:
        return ""
    is_plain = links.inside.startswith("http:")
    return f"{links.inside.removesuffix(links.prefix) if is_plain else links.address}/trust"


def own_version() -> str:
    """Return the installed version, such as `1.0.0`."""
    try:
        return version("venuebox")
    except PackageNotFoundError:  # the program runs from a checkout and is not installed
        return "from source"


def path_prefix(name: EnvironmentName) -> str:
    """Return the path prefix: `""` for live, `"/test"` for test."""
    return "" if name == "live" else "/test"
