"""The box's own certificate authority and the names in its certificates.

The authority may only sign for the names and private ranges it was made for: a phone that trusts
it trusts nothing else through it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from socket import gethostname
from urllib.parse import urlsplit

import ifaddr
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.clock import BUILT_AT
from appliance.core.network import is_public
from appliance.core.settings import ServerSettings

Network = IPv4Network | IPv6Network

_LOOPBACK = ("127.0.0.0/8", "::1/128")
# The authority covers whole ranges: it stays valid if the box's address changes within one.
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")


@dataclass(frozen=True, slots=True)
class Names:
    """DNS names in lower case and IP addresses as text, both sorted."""

    dns: tuple[str, ...]
    addresses: tuple[str, ...]

    def cover(self, name: str) -> bool:
        """Whether an imported certificate with these names is served for the SNI name `name`.

        Never for `.local` names and names without a dot: those use the box's own certificate.
        """
        name = name.lower()
        parent = name.partition(".")[2]
        if not parent or name.endswith(".local"):
            return False
        return name in self.dns or f"*.{parent}" in self.dns

    def ranges(self) -> list[Network]:
        """The networks to permit: the private range of each address, or the address itself.

        If all addresses are loopback, every private range, for addresses the box gets later.
        """
        found = {ip_network(text) for text in _LOOPBACK}
        private = [ip_network(text) for text in _PRIVATE]
        if all(ip_address(text).is_loopback for text in self.addresses):
            found.update(private)
        for text in self.addresses:
            address = ip_address(text)
            if not address.is_loopback:
                around = [network for network in private if address in network]
                found.update(around or [ip_network(text)])
        return sorted(found, key=lambda network: (network.version, network))


def wanted_names(slug: str, server: ServerSettings, addresses: Iterable[str]) -> Names:
    """Return `<slug>.local`, the hostname, the names in the settings, loopback and `addresses`.

    Excludes the host of a public `app_url`: visitors there do not trust the box's authority.
    """
    machine = gethostname()
    given = ["localhost", f"{slug}.local", machine, *server.names]
    if "." not in machine:
        given.append(f"{machine}.local")
    if not is_public(server.app_url):
        given.append(urlsplit(server.app_url).hostname or "")
    dns = {name.lower().rstrip(".") for name in given}
    literal = {name for name in dns if _is_address(name)}
    return Names(
        tuple(sorted(name for name in dns - literal if _is_name(name))),
        tuple(sorted({"127.0.0.1", "::1", *literal, *addresses})),
    )


def own_addresses() -> list[str]:
    """List the addresses of this machine, without loopback, link-local and multicast."""
    return sorted({text for text, _index in own_interfaces()})


def own_interfaces() -> list[tuple[str, int]]:
    """List (address, adapter index) pairs. A replugged adapter gets a new index."""
    found = set()
    for adapter in ifaddr.get_adapters():
        for entry in adapter.ips:
            text = entry.ip if isinstance(entry.ip, str) else entry.ip[0]
            address = ip_address(text)
            if not (address.is_loopback or address.is_link_local or address.is_multicast):
                found.add((text, adapter.index or 0))
    return sorted(found)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_name(text: str) -> bool:
    """Whether a certificate can contain the name; others would make the certificate invalid."""
    return text.isascii() and 1 <= len(text) <= 253 and not set(text) & set("_ */:[]")


AUTHORITY_DAYS = 3650
LEAF_DAYS = 820  # Apple devices accept at most 825
RENEW_DAYS = 30
_NO_USAGES = (
    "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "encipher_only", "decipher_only",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and its certificate; `chain` is sent with the certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()

    def pem(self) -> bytes:
        """Key, certificate and chain as PEM for one file, so that they are replaced atomically."""
        return to_pem(self.key, (self.certificate, *self.chain))


def to_pem(key: PrivateKeyTypes, certificates: Iterable[x509.Certificate]) -> bytes:
    """Return the private key, not encrypted, followed by the certificates, as PEM."""
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(encoding, form, serialization.NoEncryption())
    return private + b"".join(each.public_bytes(encoding) for each in certificates)


def make_authority(venue: str, names: Names, now: int) -> Identity:
    """Create an authority (EC P-256) constrained to these names and the ranges of `names`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"{venue} (venuebox)")
    permitted: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    permitted += [x509.IPAddress(network) for network in names.ranges()]
    builder = _builder(subject, subject, key, now, AUTHORITY_DAYS, signs=True)
    builder = builder.add_extension(x509.NameConstraints(permitted, None), critical=True)
    return Identity(key, builder.sign(key, hashes.SHA256()))


def make_leaf(authority: Identity, names: Names, now: int) -> Identity:
    """Create a key and a certificate for those of `names` that the authority may sign for."""
    allowed = within(authority.certificate, names)
    key = ec.generate_private_key(ec.SECP256R1())
    said: list[x509.GeneralName] = [x509.DNSName(name) for name in allowed.dns]
    said += [x509.IPAddress(ip_address(text)) for text in allowed.addresses]
    subject = _subject(next((name for name in allowed.dns if name != "localhost"), "localhost"))
    issuer = authority.certificate
    builder = _builder(subject, issuer.subject, key, now, LEAF_DAYS, signs=False)
    for extension in (
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.SubjectAlternativeName(said),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
    ):
        builder = builder.add_extension(extension, critical=False)
    return Identity(key, builder.sign(authority.key, hashes.SHA256()), (issuer,))


def within(authority: x509.Certificate, names: Names) -> Names:
    """Return those of `names` that the authority's name constraints permit."""
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
    """Return the subject alternative names of a certificate; empty without the extension."""
    try:
        said = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Names((), ())
    addresses = said.get_values_for_type(x509.IPAddress)
    return Names(
        tuple(sorted(name.lower() for name in said.get_values_for_type(x509.DNSName))),
        tuple(sorted(str(address) for address in addresses)),
    )


def ends_at(certificate: x509.Certificate) -> int:
    """End of validity, in ms since 1970."""
    return round(certificate.not_valid_after_utc.timestamp() * 1000)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: int, days: int,
    *, signs: bool,
) -> x509.CertificateBuilder:  # fmt: skip
    """Start a certificate, valid from a day before `now` (at least the build time)."""
    # The day is for phones whose clock is slow.
    begins = datetime.fromtimestamp(max(now, BUILT_AT) // 1000, UTC) - timedelta(days=1)
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
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
