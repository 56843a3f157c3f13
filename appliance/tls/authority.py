"""The authority that a box makes for itself, and the certificates that it signs.

It may only sign for the names and the private ranges it was made for: a phone that trusts it
trusts nothing else by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.clock_trust import BUILT_AT
from appliance.tls.names import Names

AUTHORITY_DAYS = 3650
LEAF_DAYS = 820  # Apple's phones take 825 at most
RENEW_DAYS = 30
_NO_USAGES = (
    "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "encipher_only", "decipher_only",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and the certificate for it; `chain` is what is sent with the certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()

    def pem(self) -> bytes:
        """Key, certificate and chain in one file: they are replaced together or not at all."""
        return to_pem(self.key, (self.certificate, *self.chain))


def to_pem(key: PrivateKeyTypes, certificates: Iterable[x509.Certificate]) -> bytes:
    """A private key, not encrypted, and what follows it in its file."""
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(encoding, form, serialization.NoEncryption())
    return private + b"".join(each.public_bytes(encoding) for each in certificates)


def make_authority(venue: str, names: Names, now: int) -> Identity:
    """A new authority for these names and what lies around these addresses; EC P-256."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"{venue} (venuebox)")
    permitted: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    permitted += [x509.IPAddress(network) for network in names.ranges()]
    builder = _builder(subject, subject, key, now, AUTHORITY_DAYS, signs=True)
    builder = builder.add_extension(x509.NameConstraints(permitted, None), critical=True)
    return Identity(key, builder.sign(key, hashes.SHA256()))


def make_leaf(authority: Identity, names: Names, now: int) -> Identity:
    """A certificate for those of `names` that the authority may sign for, with a new key."""
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
    """Those of `names` that the authority may sign for."""
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
    """What a certificate says it is for."""
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
    """When it ends, in ms since 1970."""
    return round(certificate.not_valid_after_utc.timestamp() * 1000)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: int, days: int,
    *, signs: bool,
) -> x509.CertificateBuilder:  # fmt: skip
    """Valid from a day ago, for phones whose clock is behind; never before the program's build."""
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
