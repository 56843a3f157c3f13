"""The certificate files in the folder `tls`, the TLS context that uses them, and ACME challenges.

The folder contains the box's own authority and certificate, and certificates from other
authorities. A certificate from another authority, imported or obtained by ACME, is used instead of
the box's own for the names in it. To obtain one by ACME, the box answers the authority's challenges
(RFC 8555, 8737).
"""

import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from appliance.clock import DAY_MS, Clock
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder, open_part, put_in_place, read_private
from appliance.core.settings import AcmeSettings
from appliance.tls.authority import (
    Identity,
    Names,
    ends_at,
    make_authority,
    make_leaf,
    names_in,
    to_pem,
    within,
)

_PROTOCOL = "acme-tls/1"
_OFFER = bytes([len(_PROTOCOL)]) + _PROTOCOL.encode()  # as in the ALPN extension of a ClientHello
_CLIENT_HELLO = 1
_DETAIL_MAX = 200


class AcmeError(Exception):
    """Raised if no certificate was obtained. `reason` is one of `REASONS` in acme.py.

    `detail` is one line, usually the error message of the authority or of `acme.dns_hook`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        line = " ".join("".join(c if c.isprintable() else " " for c in detail).split())
        self.detail = line[:_DETAIL_MAX].rstrip(".")


class Challenges:
    """The answers to the authority's challenges during an order.

    The order runs in its own thread, which adds the answers.
    """

    def __init__(self) -> None:
        self._contexts: dict[str, ssl.SSLContext] = {}  # by host name
        self._validating: WeakSet[ssl.SSLObject] = WeakSet()

    @contextmanager
    def answering(self, context: ssl.SSLContext) -> Iterator[None]:
        """Recognise the authority's TLS-ALPN-01 connections to `context` during the block.

        These connections offer the protocol `acme-tls/1`, but Python does not pass the offered
        protocols to `sni_callback`. OpenSSL calls the message callback before `sni_callback`, with
        the whole ClientHello, which contains the protocols. The message callback is set only while
        an order is in progress.
        """
        context._msg_callback = self._on_message  # type: ignore[attr-defined] # noqa: SLF001
        try:
            yield
        finally:
            context._msg_callback = None  # type: ignore[attr-defined] # noqa: SLF001
            self._contexts.clear()

    def show(self, name: str, key_authorization: str, folder: Path) -> None:
        """Answer TLS-ALPN-01 challenges for `name` from now on.

        Writes the certificate to a temporary file in `folder`, because OpenSSL can load it only
        from a file.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols([_PROTOCOL])
        with open_part(folder / "challenge.pem") as file:
            file.write(_make_certificate(name, key_authorization))
            file.flush()
            context.load_cert_chain(file.name)
        self._contexts[name] = context

    def find(self, client: ssl.SSLObject, name: str) -> ssl.SSLContext | None:
        """Return the context that answers the challenge for `name`.

        Returns None if `client` is not the authority or there is no challenge for this name.
        """
        return self._contexts.get(name) if client in self._validating else None

    def _on_message(
        self, client: ssl.SSLObject, direction: str, _version: Any, _kind: Any, message: Any,
        content: bytes,
    ) -> None:  # fmt: skip
        if direction == "read" and message == _CLIENT_HELLO and _OFFER in content:
            self._validating.add(client)


@dataclass(frozen=True, slots=True)
class Order:
    """An order for a certificate for `name`. `folder` contains the account's key."""

    settings: AcmeSettings
    name: str
    folder: Path
    challenges: Challenges


def _make_certificate(name: str, key_authorization: str) -> bytes:
    """Return a key and a self-signed certificate for TLS-ALPN-01 as PEM (RFC 8737, section 3).

    The certificate contains the hash of `key_authorization`.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ACME challenge")])
    now = datetime.now(UTC)
    digest = b"\x04\x20" + sha256(key_authorization.encode()).digest()  # a DER OCTET STRING
    proof = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31"), digest)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(proof, critical=True)
        .sign(key, hashes.SHA256())
    )
    return to_pem(key, (certificate,))


_RENEW_DAYS = 30  # before the certificate expires
AUTHORITY, LEAF, IMPORTED, OBTAINED = "authority.pem", "box.pem", "own.pem", "acme.pem"
_OF_OTHERS = (IMPORTED, OBTAINED)  # for a name in both, the imported certificate is used
# The file with the fingerprint of the box's own authority, written when a device downloads the
# authority's certificate.
_GIVEN = "given"


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
            "the certificate is not in PEM format. It must contain -----BEGIN CERTIFICATE-----."
        ) from None
    try:
        private = serialization.load_pem_private_key(key, None)
    except TypeError:
        raise OperatorError("the key is encrypted. Provide a key without a password.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise OperatorError(
            "the key is not in PEM format. It must contain a line such as "
            "-----BEGIN PRIVATE KEY-----."
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


def describe(folder: Path, now: int) -> dict[str, Any] | None:
    """Describe the box's own certificate in JSON types, or return None if it does not exist yet.

    The keys are `names`, `daysLeft`, `fingerprint`, `authority` (a fingerprint or None),
    `imported` and `obtained` (the first three keys of that certificate, or None).
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
        "daysLeft": (ends_at(certificate) - now) // DAY_MS,
        "fingerprint": _fingerprint(certificate),
    }


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


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
        """Create missing certificates, then load all certificates.

        Raises OperatorError if a file is damaged or readable by other users.
        """
        authority = read_identity(self.folder / AUTHORITY) or self._make_authority()
        leaf = read_identity(self.folder / LEAF)
        if leaf is None or leaf.chain != (authority.certificate,):
            self._make_leaf(authority)
        self.load()

    def renew(self) -> bool:
        """Renew the certificate if it expires within 30 days or its names changed.

        Also renews a certificate that is not valid yet because the clock was ahead when it was
        created. Returns whether the certificate was renewed.
        """
        authority, leaf = read_identity(self.folder / AUTHORITY), read_identity(self.folder / LEAF)
        if authority is None or self._is_outgrown(authority):
            authority = self._make_authority()
        if leaf is not None and not self._is_due(authority, leaf):
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
            raise OperatorError(
                f"{leaf} is missing, unreadable or damaged. Delete it and restart the box."
            ) from None
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

        This is the case if no device trusts it, and it either does not permit a host name that the
        box needs or was created while the clock was ahead.
        """
        is_complete = within(authority.certificate, self.wanted()).dns == self.wanted().dns
        is_usable = is_complete and self._has_begun(authority)
        return not (is_usable or self._is_given() or self.has_terminals())

    def _has_begun(self, identity: Identity) -> bool:
        return identity.certificate.not_valid_before_utc.timestamp() * 1000 <= self.clock.now()

    def _is_due(self, authority: Identity, leaf: Identity) -> bool:
        ends_soon = ends_at(leaf.certificate) - self.clock.now() < _RENEW_DAYS * DAY_MS
        names = within(authority.certificate, self.wanted())
        signed = self._has_begun(leaf) and leaf.chain == (authority.certificate,)
        return ends_soon or not signed or names_in(leaf.certificate) != names
