"""Whether only this machine reaches what listens at a host, or what a link leads to; and https."""

from ipaddress import ip_address


def is_alone(host: str) -> bool:
    """Whether `host` is this machine's name for itself, or an address that no other has."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def speaks_tls(host: str, tls_port: int) -> bool:
    """Whether https is served: never by a box that only this machine can reach."""
    return tls_port > 0 and not is_alone(host)
