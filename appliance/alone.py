"""Who reaches a host or a link: this machine, the venue's network or the internet; and https."""

from ipaddress import ip_address
from urllib.parse import urlsplit

_LOCAL_ENDINGS = (".local", ".lan", ".home.arpa", ".internal")


def is_alone(host: str) -> bool:
    """Whether `host` is this machine's name for itself, or an address that no other has."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def speaks_tls(host: str, tls_port: int) -> bool:
    """Whether https is served: never by a box that only this machine can reach."""
    return tls_port > 0 and not is_alone(host)


def https_base(host: str, port: int) -> str:
    """The https URL of a host and port, without a slash at its end."""
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}" if port == 443 else f"https://{shown}:{port}"


def is_public(url: str) -> bool:
    """Whether the host of `url` lies outside the venue's own network, as far as its name tells."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return not ip_address(host).is_private
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_ENDINGS)
