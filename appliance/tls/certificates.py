"""TLS certificates: the box's own authority and certificate, and certificates from others.

The authority may sign only for the names and private address ranges that it was created for. A
phone that trusts the authority therefore accepts its certificates only for these. A certificate
from another authority, imported or obtained by ACME, replaces the box's own for the names in it.
"""

import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from socket import gethostname
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.clock import BUILT_AT, Clock, format_instant
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder, open_part, put_in_place, read_private
from appliance.core.network import is_public, listens_at
from appliance.core.settings import ServerSettings
from appliance.tls.challenges import Challenges

Network = IPv4Network | IPv6Network

_LOOPBACK = ("127.0.0.0/8", "::1/128")
# The authority may sign for whole ranges, so it stays usable if the box's address changes.
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")


@dataclass(frozen=True, slots=True)
class Names:
    """Sorted DNS names in lower case, and sorted IP addresses as text."""

    dns: tuple[str, ...]
    addresses: tuple[str, ...]

    def cover(self, name: str) -> bool:
        """Whether another authority's certificate with these names is used for SNI name `name`.

        Returns False for `.local` names and names without a dot, because the box's own certificate
        is used for them.
        """
        name = name.lower()
        parent = name.partition(".")[2]
        if not parent or name.endswith(".local"):
            return False
        return name in self.dns or f"*.{parent}" in self.dns

    def ranges(self) -> list[Network]:
        """Return the networks to permit: the private range of each address, or the address itself.

        If all addresses are loopback, permit every private range, because the box may get an
        address later.
        """
        networks = {ip_network(text) for text in _LOOPBACK}
        private = [ip_network(text) for text in _PRIVATE]
        if all(ip_address(text).is_loopback for text in self.addresses):
            networks.update(private)
        for text in self.addresses:
            address = ip_address(text)
            if not address.is_loopback:
                ranges = [network for network in private if address in network]
                networks.update(ranges or [ip_network(text)])
        return sorted(networks, key=lambda network: (network.version, network))


def wanted_names(slug: str, server: ServerSettings, addresses: Iterable[str]) -> Names:
    """Return the names that the box's own certificate should have.

    These are `<slug>.local`, the hostname, the names in the settings, the loopback names and
    addresses, and those of `addresses` at which the box listens. The host of a public `app_url` is
    excluded, because its visitors do not trust the authority.
    """
    machine = gethostname()
    names = ["localhost", f"{slug}.local", machine, *server.names]
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
RENEW_DAYS = 30
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
    """Create a key and a certificate for the names in `names` that the authority may sign for."""
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
    """Return a builder for a certificate that is valid for `days`.

    The validity begins one day before `now`. If the program was built after `now`, it begins one
    day before the build.
    """
    # Begin a day early for phones whose clock is slow.
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


DAY_MS = 86_400_000
AUTHORITY, LEAF, IMPORTED, OBTAINED = "authority.pem", "box.pem", "own.pem", "acme.pem"
ORDER = "acme-order.json"  # the private key and the URLs of an ACME order that is not finished
_OF_OTHERS = (IMPORTED, OBTAINED)  # for a name in both, the imported certificate is used
_GIVEN = "given"  # contains the fingerprint of the authority whose certificate was downloaded


def read_identity(path: Path) -> Identity | None:
    """Return the identity in a file that the box wrote, or None if the file is missing.

    Raises OperatorError if the file is damaged or was written by another program.
    """
    try:
        content = read_private(path)
    except FileNotFoundError:
        return None
    try:
        key = serialization.load_pem_private_key(content, None)
        certificate, *chain = x509.load_pem_x509_certificates(content)
    except ValueError:
        raise OperatorError(f"{path} is damaged. Restore it from a backup, or delete it.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise OperatorError(f"{path} was not created by the box. Delete it.")
    return Identity(key, certificate, tuple(chain))


def read_certificate(path: Path) -> x509.Certificate | None:
    """Return the first certificate in a file, or None if the file is missing or unreadable."""
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError):
        return None


def import_certificate(
    folder: Path, certificates: bytes, key: bytes, now: int, file: str = IMPORTED, name: str = ""
) -> Names:
    """Store a certificate with its chain and key (PEM) in `folder`, and return its names.

    If `name` is given, the certificate must be for it. Raises OperatorError, and changes nothing,
    if the certificate or the key is unusable.
    """
    try:
        chain = x509.load_pem_x509_certificates(certificates)
    except ValueError:
        raise OperatorError(
            "the certificate is not in PEM format, which begins with BEGIN CERTIFICATE"
        ) from None
    try:
        private = serialization.load_pem_private_key(key, None)
    except TypeError:
        raise OperatorError("the key is encrypted. Provide a key without a password.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise OperatorError(
            "the key is not in PEM format, which begins with BEGIN PRIVATE KEY"
        ) from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if chain[0].public_key().public_bytes(*form) != private.public_key().public_bytes(*form):
        raise OperatorError(
            "the key does not match the first certificate. Put the server's certificate first."
        )
    if ends_at(chain[0]) <= now:
        raise OperatorError("the certificate has expired. Renew it first.")
    names = names_in(chain[0])
    if not names.dns:
        raise OperatorError("the certificate has no DNS name, so phones refuse it")
    if name and not names.cover(name):
        raise OperatorError(f"the certificate is for {', '.join(names.dns)}, not for {name}")
    make_folder(folder)
    with open_part(folder / file) as part:
        part.write(to_pem(private, chain))
        part.flush()
        try:
            make_context().load_cert_chain(part.name)
        except ssl.SSLError as error:
            raise OperatorError(f"the certificate cannot be used ({error.reason})") from None
        put_in_place(part, folder / file)
    return names


def forget_certificate(folder: Path, file: str = IMPORTED) -> bool:
    """Delete the imported certificate, or the certificate in `file`. Return False if missing."""
    try:
        (folder / file).unlink()
    except FileNotFoundError:
        return False
    return True


def describe(folder: Path, now: int) -> dict[str, Any] | None:
    """Describe the box's own certificate in JSON types, or return None if it does not exist yet.

    The keys are `names`, `endsAt`, `daysLeft`, `fingerprint`, `authority` (a fingerprint or None),
    `imported` and `obtained` (the first four keys of that certificate, or None).
    """
    own = read_certificate(folder / LEAF)
    if own is None:
        return None
    authority = read_certificate(folder / AUTHORITY)
    imported, obtained = (read_certificate(folder / file) for file in _OF_OTHERS)
    return _describe(own, now) | {
        "authority": authority and _fingerprint(authority),
        "imported": imported and _describe(imported, now),
        "obtained": obtained and _describe(obtained, now),
    }


def _describe(certificate: x509.Certificate, now: int) -> dict[str, Any]:
    names = names_in(certificate)
    return {
        "names": [*names.dns, *names.addresses],
        "endsAt": format_instant(ends_at(certificate)),
        "daysLeft": (ends_at(certificate) - now) // DAY_MS,
        "fingerprint": _fingerprint(certificate),
    }


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


log = logging.getLogger(__name__)

# The cipher suites for TLS 1.2. TLS 1.3 has separate suites.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


def make_context() -> ssl.SSLContext:
    """Create a server context: TLS 1.2 or newer, modern cipher suites, no renegotiation."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(slots=True)
class Certificates:
    """The certificates in `folder` and the TLS context that uses them.

    `context` has the box's own certificate. If a client requests (by SNI) a name in another
    authority's certificate, that certificate's context is used instead. Each certificate needs its
    own context, because a context holds only one certificate per key type.
    """

    folder: Path
    clock: Clock
    venue: Callable[[], str]
    wanted: Callable[[], Names]
    has_terminals: Callable[[], bool]
    context: ssl.SSLContext = field(default_factory=make_context)
    challenges: Challenges = field(default_factory=Challenges)
    _of_others: list[tuple[Names, ssl.SSLContext]] = field(default_factory=list)

    def prepare(self) -> None:
        """Create missing certificates, even if the clock is not trusted. Load all certificates.

        Raises OperatorError if a file is damaged or readable by other users.
        """
        authority = read_identity(self.folder / AUTHORITY) or self._make_authority()
        leaf = read_identity(self.folder / LEAF)
        if leaf is None or leaf.chain != (authority.certificate,):
            self._make_leaf(authority)
        self.load()

    def renew(self, *, force: bool = False) -> bool:
        """Renew the certificate if it expires within 30 days, its names changed or `force` is True.

        Returns whether it was renewed. Call it only while the clock is trusted.
        """
        authority, leaf = read_identity(self.folder / AUTHORITY), read_identity(self.folder / LEAF)
        if authority is None or self._is_outgrown(authority):
            authority = self._make_authority()
        if leaf is not None and not force and not self._is_due(authority, leaf):
            return False
        self._make_leaf(authority)
        self.load()
        return True

    def load(self) -> None:
        """Load the certificate files. New connections then use these certificates.

        Raises OperatorError if `box.pem` is missing or damaged.
        """
        leaf = self.folder / LEAF
        try:
            self.context.load_cert_chain(leaf)
        except (OSError, ssl.SSLError):
            raise OperatorError(f"{leaf} is damaged. Delete it and restart the box.") from None
        found = [self._load_other(self.folder / file) for file in _OF_OTHERS]
        self._of_others = [pair for pair in found if pair is not None]
        self.context.sni_callback = self._choose

    def _load_other(self, path: Path) -> tuple[Names, ssl.SSLContext] | None:
        context = make_context()
        try:
            context.load_cert_chain(path)
            return names_in(x509.load_pem_x509_certificates(path.read_bytes())[0]), context
        except FileNotFoundError:
            return None
        except (OSError, ValueError):  # ssl.SSLError is an OSError
            log.warning("tls: %s is unusable; the box's own certificate is used", path.name)
            return None

    def _choose(self, client: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        requested = (name or "").lower()
        found = (context for names, context in self._of_others if names.cover(requested))
        context = self.challenges.find(client, requested) or next(found, None)
        if context is not None:
            client.context = context

    def authority_pem(self) -> bytes:
        """Return the authority's certificate as PEM, without the key."""
        return self._authority().public_bytes(serialization.Encoding.PEM)

    def give_authority(self) -> bytes:
        """Return the authority's certificate as DER, for phones to install.

        The authority is not replaced afterwards, because devices may trust it.
        """
        if not self._is_given():
            atomic_write(self.folder / _GIVEN, self.fingerprint().encode())
        return self._authority().public_bytes(serialization.Encoding.DER)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the authority's certificate, in hex with colons, for display."""
        return self._authority().fingerprint(hashes.SHA256()).hex(":").upper()

    def _authority(self) -> x509.Certificate:
        found = read_identity(self.folder / AUTHORITY)
        if found is None:
            raise OperatorError(f"{self.folder / AUTHORITY} is missing. Restart the box.")
        return found.certificate

    def _make_authority(self) -> Identity:
        authority = make_authority(self.venue(), self.wanted(), self.clock.now())
        make_folder(self.folder)
        atomic_write(self.folder / AUTHORITY, authority.pem())
        return authority

    def _make_leaf(self, authority: Identity) -> None:
        leaf = make_leaf(authority, self.wanted(), self.clock.now())
        atomic_write(self.folder / LEAF, leaf.pem())

    def _is_given(self) -> bool:
        try:
            return (self.folder / _GIVEN).read_text("ascii") == self.fingerprint()
        except FileNotFoundError:
            return False

    def _is_outgrown(self, authority: Identity) -> bool:
        """Whether the authority must be replaced.

        This is so if it does not permit a host name that the box needs, and no device trusts it.
        """
        is_complete = within(authority.certificate, self.wanted()).dns == self.wanted().dns
        return not (is_complete or self._is_given() or self.has_terminals())

    def _is_due(self, authority: Identity, leaf: Identity) -> bool:
        ends_soon = ends_at(leaf.certificate) - self.clock.now() < RENEW_DAYS * DAY_MS
        names = within(authority.certificate, self.wanted())
        signed = leaf.chain == (authority.certificate,)
        return ends_soon or not signed or names_in(leaf.certificate) != names
