"""The certificate that is in use: made at the first start, renewed in time, never interrupting."""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from appliance.clock import Clock
from appliance.errors import Trouble
from appliance.tls.authority import (
    RENEW_DAYS,
    Identity,
    ends_at,
    make_authority,
    make_leaf,
    names_in,
    within,
)
from appliance.tls.files import (
    AUTHORITY,
    IMPORTED,
    LEAF,
    read_certificate,
    read_identity,
    write_identity,
)
from appliance.tls.names import Names

log = logging.getLogger(__name__)

DAY_MS = 86_400_000
# ECDHE with AES-GCM or ChaCha20, which is what TLS 1.2 has left; TLS 1.3 chooses its own.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


@dataclass(slots=True)
class Certificates:
    """The files of `folder`, and the context that serves whichever certificate is in use."""

    folder: Path
    clock: Clock
    venue: Callable[[], str]
    wanted: Callable[[], Names]
    context: ssl.SSLContext

    def prepare(self) -> None:
        """Make what is missing, whatever the clock says, and load what is there.

        Trouble when a file is spoiled or readable by others.
        """
        authority = self._authority()
        if read_identity(self.folder / LEAF) is None:
            write_identity(
                self.folder / LEAF, make_leaf(authority, self.wanted(), self.clock.now())
            )
        self.load()

    def renew(self, *, force: bool = False) -> bool:
        """A new certificate if this one ends within 30 days or names others; whether it did.

        Only to be called while the clock is trusted.
        """
        authority, leaf = self._authority(), read_identity(self.folder / LEAF)
        if leaf is not None and not force and not self._is_due(authority, leaf):
            return False
        write_identity(self.folder / LEAF, make_leaf(authority, self.wanted(), self.clock.now()))
        self.load()
        return True

    def load(self) -> None:
        """Serve what the files hold, from the next connection on."""
        own = self.folder / IMPORTED
        chosen = own if own.exists() else self.folder / LEAF
        try:
            self.context.load_cert_chain(chosen)
        except (OSError, ssl.SSLError):
            if chosen != own:
                raise Trouble(f"{chosen} is damaged: delete it, the box makes another") from None
            log.warning("the imported certificate cannot be used, the box's own is")
            self.context.load_cert_chain(self.folder / LEAF)

    @property
    def imported(self) -> x509.Certificate | None:
        """The owner's own certificate, if there is one."""
        return read_certificate(self.folder / IMPORTED)

    def authority_pem(self) -> bytes:
        """The authority's certificate, for phones to trust. The key is not in it."""
        return self._authority().certificate.public_bytes(serialization.Encoding.PEM)

    def authority_der(self) -> bytes:
        """The same in the form that phones install."""
        return self._authority().certificate.public_bytes(serialization.Encoding.DER)

    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate, to compare by eye."""
        digest = self._authority().certificate.fingerprint(hashes.SHA256()).hex().upper()
        return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))

    def _authority(self) -> Identity:
        found = read_identity(self.folder / AUTHORITY)
        if found is None or self._is_outgrown(found):
            found = make_authority(self.venue(), self.wanted(), self.clock.now())
            write_identity(self.folder / AUTHORITY, found)
        return found

    def _is_outgrown(self, authority: Identity) -> bool:
        """Whether it was made today, before the venue had its name: nobody's phone knows it yet."""
        made = round(authority.certificate.not_valid_before_utc.timestamp() * 1000)
        is_new = self.clock.now() - made < 2 * DAY_MS  # it begins a day before it is made
        wanted = self.wanted()
        return is_new and within(authority.certificate, wanted).dns != wanted.dns

    def _is_due(self, authority: Identity, leaf: Identity) -> bool:
        ends_soon = ends_at(leaf.certificate) - self.clock.now() < RENEW_DAYS * DAY_MS
        names = within(authority.certificate, self.wanted())
        signed = leaf.chain == (authority.certificate,)
        return ends_soon or not signed or names_in(leaf.certificate) != names


def make_context() -> ssl.SSLContext:
    """TLS 1.2 and newer, modern suites, no renegotiation."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    return context
