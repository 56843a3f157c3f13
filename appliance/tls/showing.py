"""What there is to say about the certificates in use: for the command line and for the doctor."""

from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from appliance.clock import format_instant
from appliance.tls.authority import ends_at, names_in
from appliance.tls.files import AUTHORITY, IMPORTED, LEAF, read_certificate

DAY_MS = 86_400_000


def describe(folder: Path, now: int) -> dict[str, Any] | None:
    """The box's own certificate, in JSON's types, with its `authority` and the `imported` one.

    None when there is none yet.
    """
    own = read_certificate(folder / LEAF)
    if own is None:
        return None
    authority, imported = read_certificate(folder / AUTHORITY), read_certificate(folder / IMPORTED)
    return {
        **_describe(own, now),
        "authority": None if authority is None else _fingerprint(authority),
        "imported": None if imported is None else _describe(imported, now),
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
