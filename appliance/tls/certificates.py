"""The TLS certificates in use, and their files: the box's own, renewed, and an imported one.

The owner's certificate is kept beside the one that the box signs for itself.
"""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.clock import Clock, format_instant
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder, read_private
from appliance.tls.authority import (
    RENEW_DAYS,
    Identity,
    Names,
    ends_at,
    make_authority,
    make_leaf,
    names_in,
    to_pem,
    within,
)

DAY_MS = 86_400_000
AUTHORITY, LEAF, IMPORTED = "authority.pem", "box.pem", "own.pem"
GIVEN = "given"  # file with the fingerprint of the authority that devices have downloaded


def read_identity(path: Path) -> Identity | None:
    """Read a file of the box's own; None if missing. Raises OperatorError if it is damaged."""
    try:
        content = read_private(path)
    except FileNotFoundError:
        return None
    try:
        key = serialization.load_pem_private_key(content, None)
        certificate, *chain = x509.load_pem_x509_certificates(content)
    except ValueError:
        raise OperatorError(f"{path} is damaged: restore it from a backup, or delete it") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise OperatorError(f"{path} was not created by the box: delete it")
    return Identity(key, certificate, tuple(chain))


def write_identity(path: Path, identity: Identity) -> None:
    """Write the identity to `path` atomically."""
    make_folder(path.parent)
    atomic_write(path, identity.pem())


def read_certificate(path: Path) -> x509.Certificate | None:
    """Return the first certificate in a file; None if the file is missing or unreadable."""
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError):
        return None


def import_certificate(folder: Path, certificates: bytes, key: bytes, now: int) -> Names:
    """Store a certificate with its chain and key (PEM) in `folder`. Returns its names.

    Raises OperatorError, and changes nothing, if certificate or key are unusable.
    """
    try:
        chain = x509.load_pem_x509_certificates(certificates)
    except ValueError:
        raise OperatorError(
            "the certificate is not in PEM: it begins with BEGIN CERTIFICATE"
        ) from None
    try:
        private = serialization.load_pem_private_key(key, None)
    except TypeError:
        raise OperatorError("the key is locked by a password: give a key without one") from None
    except (ValueError, UnsupportedAlgorithm):
        raise OperatorError("the key is not in PEM: it begins with BEGIN PRIVATE KEY") from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if chain[0].public_key().public_bytes(*form) != private.public_key().public_bytes(*form):
        raise OperatorError(
            "key and certificate do not belong together: put the server's certificate first"
        )
    if ends_at(chain[0]) <= now:
        raise OperatorError("the certificate has ended: renew it first")
    names = names_in(chain[0])
    if not names.dns:
        raise OperatorError("the certificate names no host: phones refuse it")
    make_folder(folder)
    atomic_write(folder / IMPORTED, to_pem(private, chain))
    return names


def forget_imported(folder: Path) -> bool:
    """Delete the imported certificate. Returns False if there was none."""
    try:
        (folder / IMPORTED).unlink()
    except FileNotFoundError:
        return False
    return True


def describe(folder: Path, now: int) -> dict[str, Any] | None:
    """Describe the box's own certificate as JSON types, with `authority` and `imported`.

    `authority` is a fingerprint. Returns None if the box has no certificate yet.
    """
    own = read_certificate(folder / LEAF)
    if own is None:
        return None
    authority, imported = read_certificate(folder / AUTHORITY), read_certificate(folder / IMPORTED)
    return _describe(own, now) | {
        "authority": authority and _fingerprint(authority),
        "imported": imported and _describe(imported, now),
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

# For TLS 1.2: ECDHE with AES-GCM or ChaCha20. TLS 1.3 has its own suites.
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
    """The certificates in `folder` and the TLS context that serves them, chosen by SNI.

    `context` has the box's own certificate. A client that requests a name of the imported one is
    switched to a second context, because one context holds one certificate per key type.
    """

    folder: Path
    clock: Clock
    venue: Callable[[], str]
    wanted: Callable[[], Names]
    has_terminals: Callable[[], bool]
    context: ssl.SSLContext = field(default_factory=make_context)
    _imported: tuple[Names, ssl.SSLContext] | None = None

    def prepare(self) -> None:
        """Create missing certificates, even with an untrusted clock, and load all.

        Raises OperatorError if a file is damaged or readable by other users.
        """
        authority = read_identity(self.folder / AUTHORITY) or self._make_authority()
        leaf = read_identity(self.folder / LEAF)
        if leaf is None or leaf.chain != (authority.certificate,):
            self._make_leaf(authority)
        self.load()

    def renew(self, *, force: bool = False) -> bool:
        """Renew the certificate if it ends within 30 days or its names changed, or if `force`.

        Returns whether it was renewed. Call only while the clock is trusted.
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
        """Load the files for new connections. Raises OperatorError if `box.pem` is damaged."""
        leaf = self.folder / LEAF
        try:
            self.context.load_cert_chain(leaf)
        except (OSError, ssl.SSLError):
            raise OperatorError(f"{leaf} is damaged: delete it, the box makes another") from None
        self._imported = self._load_imported()
        self.context.sni_callback = self._choose

    def _load_imported(self) -> tuple[Names, ssl.SSLContext] | None:
        path, context = self.folder / IMPORTED, make_context()
        try:
            context.load_cert_chain(path)
            return names_in(x509.load_pem_x509_certificates(path.read_bytes())[0]), context
        except FileNotFoundError:
            return None
        except (OSError, ValueError):  # ssl.SSLError is an OSError
            log.warning("tls: imported certificate is unusable; import it again")
            return None

    def _choose(self, client: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if self._imported is not None and self._imported[0].cover(name or ""):
            client.context = self._imported[1]

    def authority_pem(self) -> bytes:
        """The authority's certificate as PEM, without the key."""
        return self._authority().public_bytes(serialization.Encoding.PEM)

    def give_authority(self) -> bytes:
        """The authority's certificate as DER, for phones. The authority is kept from now on."""
        if not self._is_given():
            atomic_write(self.folder / GIVEN, self.fingerprint().encode())
        return self._authority().public_bytes(serialization.Encoding.DER)

    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate, in hex with colons, to compare by eye."""
        return self._authority().fingerprint(hashes.SHA256()).hex(":").upper()

    def _authority(self) -> x509.Certificate:
        found = read_identity(self.folder / AUTHORITY)
        if found is None:
            raise OperatorError(f"{self.folder / AUTHORITY} is missing: restart the box")
        return found.certificate

    def _make_authority(self) -> Identity:
        made = make_authority(self.venue(), self.wanted(), self.clock.now())
        write_identity(self.folder / AUTHORITY, made)
        return made

    def _make_leaf(self, authority: Identity) -> None:
        made = make_leaf(authority, self.wanted(), self.clock.now())
        write_identity(self.folder / LEAF, made)

    def _is_given(self) -> bool:
        try:
            return (self.folder / GIVEN).read_text("ascii") == self.fingerprint()
        except FileNotFoundError:
            return False

    def _is_outgrown(self, authority: Identity) -> bool:
        """Whether the authority lacks a name and can be replaced: no device trusts it yet."""
        is_complete = within(authority.certificate, self.wanted()).dns == self.wanted().dns
        return not (is_complete or self._is_given() or self.has_terminals())

    def _is_due(self, authority: Identity, leaf: Identity) -> bool:
        ends_soon = ends_at(leaf.certificate) - self.clock.now() < RENEW_DAYS * DAY_MS
        names = within(authority.certificate, self.wanted())
        signed = leaf.chain == (authority.certificate,)
        return ends_soon or not signed or names_in(leaf.certificate) != names
