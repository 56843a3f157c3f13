"""The files of `tls/`: each holds a key with its certificates, 0600, replaced as a whole."""

import stat
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.data_directory import write_file
from appliance.errors import Trouble
from appliance.file_ownership import make_folder
from appliance.tls.authority import Identity

AUTHORITY, LEAF, IMPORTED = "authority.pem", "box.pem", "own.pem"
GIVEN = "given"  # the fingerprint of the authority that a device was given to trust


def read_identity(path: Path) -> Identity | None:
    """What one of our own files holds, None when it is missing; Trouble when it is spoiled."""
    try:
        content = path.read_bytes()
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Trouble(f"{path} cannot be read ({error.strerror}): run as its owner") from None
    if mode & 0o077:
        raise Trouble(f"{path} can be read by others: run chmod 600 {path}")
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
    write_file(path, identity.pem())


def read_certificate(path: Path) -> x509.Certificate | None:
    """The first certificate of a file, whatever its key; None when there is none."""
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError):
        return None
