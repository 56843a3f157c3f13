"""The box's own authority: its name constraints, the certificates that it signs, and their names.

The authority may sign only for the names that it was created for and for private addresses. A
phone that trusts the authority therefore accepts its certificates only for these.
"""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import apsw
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.clock import parse_instant
from appliance.core.network import is_public, listens_at
from appliance.core.settings import ServerSettings

Network = IPv4Network | IPv6Network

# The release date of the bundled SQLite. A clock that shows an earlier time is wrong.
_BUILT_AT = parse_instant(f"{apsw.sqlite3_sourceid()[:10]}T00:00:00Z")
_LOOPBACK = ("127.0.0.0/8", "::1/128")
# The authority may sign for all of them, so it stays usable behind a new router or with a VPN.
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")


@dataclass(frozen=True, slots=True)
class Names:
    """Sorted DNS names in lower case, and sorted IP addresses as text."""

    dns: tuple[str, ...]
    addresses: tuple[str, ...]

    def cover(self, name: str) -> bool:
        """Whether another authority's certificate with these names is used for the SNI name `name`.

        Returns False for `.local` names and names without a dot, because the box's own certificate
        is used for them.
        """
        name = name.lower()
        parent = name.partition(".")[2]
        if not parent or name.endswith(".local"):
            return False
        return name in self.dns or f"*.{parent}" in self.dns

    def ranges(self) -> list[Network]:
        """Return the networks to permit: all private ranges, and each other address itself."""
        networks = {ip_network(text) for text in (*_LOOPBACK, *_PRIVATE)}
        for text in self.addresses:
            if not any(ip_address(text) in network for network in networks):
                networks.add(ip_network(text))
        return sorted(networks, key=lambda network: (network.version, network))


def wanted_names(slug: str, server: ServerSettings, addresses: Iterable[str]) -> Names:
    """Return the names that the box's own certificate should have.

    These are `<slug>.local`, the hostname, the names in the settings, the loopback names and
    addresses, and those of `addresses` that the box listens on. The host of a public `app_url` is
    excluded, because its visitors do not trust the authority.
    """
    machine = socket.gethostname()
    names = ["localhost", f"{slug}.local", machine, *server.names, server.house_address]
    if "." not in machine:
        names.append(f"{machine}.local")
    if not is_public(server.app_url):
        names.append(urlsplit(server.app_url).hostname or "")
    dns = {name.lower().rstrip(".") for name in names}
    literals = {name for name in dns if _is_address(name)}
    literals.update(text for text in addresses if listens_at(server.host, text))
    return Names(
        tuple(sorted(name for name in dns - literals if _is_dns_name(name))),
        tuple(sorted({"127.0.0.1", "::1", *literals})),
    )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_dns_name(text: str) -> bool:
    """Whether `text` is valid as a DNS name in a certificate."""
    return text.isascii() and 1 <= len(text) <= 253 and not set(text) & set("_ */:[]")


AUTHORITY_DAYS = 3650
LEAF_DAYS = 820  # Apple devices accept at most 825 days
_NO_USAGES = (
    "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "encipher_only", "decipher_only",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key, its certificate, and the chain of certificates that are sent with it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()

    def pem(self) -> bytes:
        """Return the key, certificate and chain as PEM, to be stored in a single file."""
        return to_pem(self.key, (self.certificate, *self.chain))


def to_pem(key: PrivateKeyTypes, certificates: Iterable[x509.Certificate]) -> bytes:
    """Return the unencrypted private key, followed by the certificates, as PEM."""
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, form, serialization.NoEncryption())
    return private + b"".join(certificate.public_bytes(pem) for certificate in certificates)


def make_authority(venue: str, names: Names, now: int) -> Identity:
    """Create an authority (EC P-256) that may sign only for `names` and their address ranges."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"{venue} (venuebox)")
    permitted: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    permitted += [x509.IPAddress(network) for network in names.ranges()]
    builder = _builder(subject, subject, key, now, AUTHORITY_DAYS, signs=True)
    builder = builder.add_extension(x509.NameConstraints(permitted, None), critical=True)
    return Identity(key, builder.sign(key, hashes.SHA256()))


def make_leaf(authority: Identity, names: Names, now: int) -> Identity:
    """Create a key and a certificate for all `names` that the authority's constraints permit."""
    allowed = within(authority.certificate, names)
    key = ec.generate_private_key(ec.SECP256R1())
    subjects: list[x509.GeneralName] = [x509.DNSName(name) for name in allowed.dns]
    subjects += [x509.IPAddress(ip_address(text)) for text in allowed.addresses]
    subject = _subject(next((name for name in allowed.dns if name != "localhost"), "localhost"))
    issuer = authority.certificate
    builder = _builder(subject, issuer.subject, key, now, LEAF_DAYS, signs=False)
    for extension in (
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.SubjectAlternativeName(subjects),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
    ):
        builder = builder.add_extension(extension, critical=False)
    return Identity(key, builder.sign(authority.key, hashes.SHA256()), (issuer,))


def within(authority: x509.Certificate, names: Names) -> Names:
    """Return the names in `names` that the authority's name constraints permit."""
    constraints = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    permitted = constraints.permitted_subtrees or []
    dns = [entry.value for entry in permitted if isinstance(entry, x509.DNSName)]
    values = [entry.value for entry in permitted if isinstance(entry, x509.IPAddress)]
    ranges = [value for value in values if isinstance(value, IPv4Network | IPv6Network)]
    return Names(
        tuple(n for n in names.dns if any(n == d or n.endswith(f".{d}") for d in dns)),
        tuple(t for t in names.addresses if any(ip_address(t) in network for network in ranges)),
    )


def names_in(certificate: x509.Certificate) -> Names:
    """Return a certificate's subject alternative names.

    Returns no names if the certificate has no such extension.
    """
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Names((), ())
    addresses = found.get_values_for_type(x509.IPAddress)
    return Names(
        tuple(sorted(name.lower() for name in found.get_values_for_type(x509.DNSName))),
        tuple(sorted(str(address) for address in addresses)),
    )


def ends_at(certificate: x509.Certificate) -> int:
    """Return when the certificate expires, in ms since 1970."""
    return round(certificate.not_valid_after_utc.timestamp() * 1000)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: int, days: int,
    *, signs: bool,
) -> x509.CertificateBuilder:  # fmt: skip
    """Return a builder for a certificate that is valid for `days` days.

    The validity begins one day before `now`. If the program was built after `now`, it begins one
    day before the build.
    """
    # Begin a day early for phones whose clock is slow.
    begins = datetime.fromtimestamp(max(now, _BUILT_AT) // 1000, UTC) - timedelta(days=1)
    unused = dict.fromkeys(_NO_USAGES, False)
    usage = x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **unused
    )
    constraints = x509.BasicConstraints(ca=signs, path_length=0 if signs else None)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=days))
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
    )


def _subject(name: str) -> x509.Name:
    short = name.encode()[:64].decode(errors="ignore")  # a certificate takes 64 bytes of UTF-8
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, short)])
