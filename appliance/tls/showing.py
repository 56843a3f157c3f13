"""What there is to say about the certificate in use: for the command line and for the doctor."""

from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes

from appliance.clock import format_instant
from appliance.tls.authority import ends_at, names_in
from appliance.tls.files import AUTHORITY, IMPORTED, LEAF, read_certificate

DAY_MS = 86_400_000


def describe(folder: Path, now: int) -> dict[str, Any] | None:
    """The certificate that is served, in JSON's types; None when there is none yet."""
    own = read_certificate(folder / IMPORTED)
    certificate = own or read_certificate(folder / LEAF)
    if certificate is None:
        return None
    authority = read_certificate(folder / AUTHORITY)
    names = names_in(certificate)
    return {
        "imported": own is not None,
        "names": [*names.dns, *names.addresses],
        "endsAt": format_instant(ends_at(certificate)),
        "daysLeft": (ends_at(certificate) - now) // DAY_MS,
        "fingerprint": certificate.fingerprint(hashes.SHA256()).hex(),
        "authority": None if authority is None else authority.fingerprint(hashes.SHA256()).hex(),
    }
