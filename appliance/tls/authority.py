"""The authority that a box makes for itself, and the certificates that it signs.

It may only sign for the names and the private ranges it was made for: a phone that trusts it
trusts nothing else by it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.clock_trust import BUILT_AT
from appliance.tls.names import Names

AUTHORITY_DAYS = 3650
LEAF_DAYS = 820  # Apple's phones take 825 at most
RENEW_DAYS = 30
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and the certificate for it; `chain` is what is sent with the certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()

    def pem(self) -> bytes:
        """Key, certificate and chain in one file: they are replaced together or not at all."""
        key = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        certificates = (self.certificate, *self.chain)
        return key + b"".join(c.public_bytes(serialization.Encoding.PEM) for c in certificates)


def make_authority(venue: str, names: Names, now: int) -> Identity:
    """A new authority for these names and what lies around these addresses; EC P-256."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"{venue} (venuebox)")
    permitted: list[x509.GeneralName] = [x509.DNSName(name) for name in names.dns]
    permitted += [x509.IPAddress(network) for network in names.ranges()]
    begins = _begins(now)
    certificate = (
        _builder(subject, subject, key.public_key(), begins, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Identity(key, certificate)


def make_leaf(authority: Identity, names: Names, now: int) -> Identity:
    """A certificate for those of `names` that the authority may sign for, with a new key."""
    allowed = within(authority.certificate, names)
    key = ec.generate_private_key(ec.SECP256R1())
    said: list[x509.GeneralName] = [x509.DNSName(name) for name in allowed.dns]
    said += [x509.IPAddress(ip_address(text)) for text in allowed.addresses]
    subject = _subject(next((name for name in allowed.dns if name != "localhost"), "localhost"))
    issuer = authority.certificate
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        _builder(subject, issuer.subject, key.public_key(), _begins(now), LEAF_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(said), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Identity(key, certificate, (issuer,))


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
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    begins: datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=days))
    )


def _begins(now: int) -> datetime:
    """A day ago, for phones whose clock is behind; never before this program was built."""
    return datetime.fromtimestamp(max(now, BUILT_AT) // 1000, UTC) - _DAY


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
