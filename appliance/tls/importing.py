"""A certificate of the owner's own, beside the one that the box signs for itself."""

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from appliance.data_directory import write_file
from appliance.errors import Trouble
from appliance.file_ownership import make_folder
from appliance.tls.authority import ends_at, names_in
from appliance.tls.files import IMPORTED
from appliance.tls.names import Names


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
    kept = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    make_folder(folder)
    pems = [c.public_bytes(serialization.Encoding.PEM) for c in chain]
    write_file(folder / IMPORTED, kept + b"".join(pems))
    return names


def forget_imported(folder: Path) -> bool:
    """Serve the box's own alone; False when there was nothing to forget."""
    try:
        (folder / IMPORTED).unlink()
    except FileNotFoundError:
        return False
    return True
