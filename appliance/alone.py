"""Whether only this machine reaches what listens at a host, or what a link leads to."""

from ipaddress import ip_address


def is_alone(host: str) -> bool:
    """Whether `host` is this machine's name for itself, or an address that no other has."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
