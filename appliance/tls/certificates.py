"""The certificates in use: the box's own, renewed in time, and an imported one; their files."""

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
GIVEN = "given"  # the fingerprint of the authority that a device was given to trust


def read_identity(path: Path) -> Identity | None:
    """What one of our own files holds, None when missing; OperatorError when damaged."""
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
        raise OperatorError(f"{path} is none of the box's own: delete it")
    return Identity(key, certificate, tuple(chain))


def write_identity(path: Path, identity: Identity) -> None:
    """Put it in place."""
    make_folder(path.parent)
    atomic_write(path, identity.pem())


def read_certificate(path: Path) -> x509.Certificate | None:
    """The first certificate of a file, whatever its key; None when there is none."""
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError):
        return None


def import_certificate(folder: Path, certificates: bytes, key: bytes, now: int) -> Names:
    """Keep an own certificate with its chain and key (PEM) in `tls/`; what it is for.

    OperatorError says what is wrong with it, and then nothing has changed.
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
        raise OperatorError("the key is locked by a password: give one without") from None
    except (ValueError, UnsupportedAlgorithm):
        raise OperatorError("the key is not in PEM: it begins with BEGIN PRIVATE KEY") from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if chain[0].public_key().public_bytes(*form) != private.public_key().public_bytes(*form):
        raise OperatorError("key and certificate do not belong together: the box's own comes first")
    if ends_at(chain[0]) <= now:
        raise OperatorError("the certificate has ended: renew it first")
    names = names_in(chain[0])
    if not names.dns:
        raise OperatorError("the certificate names no host: phones refuse it")
    make_folder(folder)
    atomic_write(folder / IMPORTED, to_pem(private, chain))
    return names


def forget_imported(folder: Path) -> bool:
    """Serve the box's own alone; False when there was nothing to forget."""
    try:
        (folder / IMPORTED).unlink()
    except FileNotFoundError:
        return False
    return True


def describe(folder: Path, now: int) -> dict[str, Any] | None:
    """The box's own certificate, in JSON's types, with its `authority` and the `imported` one.

    None when there is none yet.
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

# ECDHE with AES-GCM or ChaCha20, which is what TLS 1.2 has left; TLS 1.3 chooses its own.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


def make_context() -> ssl.SSLContext:
    """TLS 1.2 and newer, modern suites, no renegotiation."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(slots=True)
class Certificates:
    """The files of `folder`, and the context that serves them: one certificate per name, by SNI.

    `context` has the box's own certificate. A client that asks for a name of the imported one is
    handed on to a context of that, for one context keeps a certificate of each kind of key.
    """

    folder: Path
    clock: Clock
    venue: Callable[[], str]
    wanted: Callable[[], Names]
    has_terminals: Callable[[], bool]
    context: ssl.SSLContext = field(default_factory=make_context)
    _imported: tuple[Names, ssl.SSLContext] | None = None

    def prepare(self) -> None:
        """Make what is missing, whatever the clock says, and load what is there.

        OperatorError when a file is spoiled or readable by others.
        """
        authority = read_identity(self.folder / AUTHORITY) or self._make_authority()
        leaf = read_identity(self.folder / LEAF)
        if leaf is None or leaf.chain != (authority.certificate,):
            self._make_leaf(authority)
        self.load()

    def renew(self, *, force: bool = False) -> bool:
        """A new certificate if this one ends within 30 days or names others; whether it did.

        Only to be called while the clock is trusted.
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
        """Serve what the files hold, from the next connection on."""
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
            log.warning("tls: the imported certificate cannot be used: import it again")
            return None

    def _choose(self, client: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        if self._imported is not None and self._imported[0].cover(name or ""):
            client.context = self._imported[1]

    def authority_pem(self) -> bytes:
        """The authority's certificate. The key is not in it."""
        return self._authority().public_bytes(serialization.Encoding.PEM)

    def give_authority(self) -> bytes:
        """The same in the form that phones install. From now on the authority stays."""
        if not self._is_given():
            atomic_write(self.folder / GIVEN, self.fingerprint().encode())
        return self._authority().public_bytes(serialization.Encoding.DER)

    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate, to compare by eye."""
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
        """Whether a name is missing in it while no device trusts it yet."""
        is_complete = within(authority.certificate, self.wanted()).dns == self.wanted().dns
        return not (is_complete or self._is_given() or self.has_terminals())

    def _is_due(self, authority: Identity, leaf: Identity) -> bool:
        ends_soon = ends_at(leaf.certificate) - self.clock.now() < RENEW_DAYS * DAY_MS
        names = within(authority.certificate, self.wanted())
        signed = leaf.chain == (authority.certificate,)
        return ends_soon or not signed or names_in(leaf.certificate) != names
