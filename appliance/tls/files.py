"""The files of `tls/`: each holds a key with its certificates, 0600, replaced as a whole.

The owner's own certificate is kept beside the one that the box signs for itself.
"""

from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.clock import format_instant
from appliance.durable import atomic_write, read_private
from appliance.errors import Trouble
from appliance.file_ownership import make_folder
from appliance.tls.authority import Identity, ends_at, names_in, to_pem
from appliance.tls.names import Names

DAY_MS = 86_400_000
AUTHORITY, LEAF, IMPORTED = "authority.pem", "box.pem", "own.pem"
GIVEN = "given"  # the fingerprint of the authority that a device was given to trust


def read_identity(path: Path) -> Identity | None:
    """What one of our own files holds, None when it is missing; Trouble when it is spoiled."""
    try:
        content = read_private(path)
    except FileNotFoundError:
        return None
    try:
        key = serialization.load_pem_private_key(content, None)
        certificate, *chain = x509.load_pem_x509_certificates(content)
    except ValueError:
        raise Trouble(f"{path} is damaged: restore it from a backup, or delete it") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Trouble(f"{path} is none of the box's own: delete it")
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

    Trouble says what is wrong with it, and then nothing has changed.
    """
    try:
        chain = x509.load_pem_x509_certificates(certificates)
    except ValueError:
        raise Trouble("the certificate is not in PEM: it begins with BEGIN CERTIFICATE") from None
    try:
        private = serialization.load_pem_private_key(key, None)
    except TypeError:
        raise Trouble("the key is locked by a password: give one without") from None
    except (ValueError, UnsupportedAlgorithm):
        raise Trouble("the key is not in PEM: it begins with BEGIN PRIVATE KEY") from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if chain[0].public_key().public_bytes(*form) != private.public_key().public_bytes(*form):
        raise Trouble("key and certificate do not belong together: the box's own comes first")
    if ends_at(chain[0]) <= now:
        raise Trouble("the certificate has ended: renew it first")
    names = names_in(chain[0])
    if not names.dns:
        raise Trouble("the certificate names no host: phones refuse it")
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
