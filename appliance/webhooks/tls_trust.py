"""How a receiver's TLS certificate is verified. Verification is never off.

Most receivers have a certificate that this machine's authorities vouch for. For a receiver in the
venue the owner names its own authority, or the very certificate.
"""

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import Awaitable, Callable

# Returns the context that verifies a certificate. May read files; raises ssl.SSLError.
Trust = Callable[[], Awaitable[ssl.SSLContext]]


class AnotherCertificate(ssl.SSLCertVerificationError):
    """The receiver showed another certificate than the pinned one."""


class SystemTrust:
    """The authorities that this machine trusts, read when first needed."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    async def __call__(self) -> ssl.SSLContext:
        """Return the context. The first call reads the authorities in a thread, about 40 ms."""
        if self._context is None:
            self._context = _modern(await asyncio.to_thread(ssl.create_default_context))
        return self._context


class OwnAuthority:
    """Trusts only certificates signed by the given authorities; name and dates are checked."""

    def __init__(self, ca: str) -> None:
        """`ca` is PEM, as `parse_ca` returns it. Any of its certificates ends the chain."""
        self._ca = ca
        self._context: ssl.SSLContext | None = None

    async def __call__(self) -> ssl.SSLContext:
        """Return the context. Raises ssl.SSLError if the certificates cannot be used."""
        if self._context is None:
            context = _modern(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cadata=self._ca)
            self._context = context
        return self._context


class PinnedCertificate:
    """Trusts exactly one certificate, whatever its issuer, name and dates.

    The handshake proves that the receiver holds its key; `check` must follow before the first
    byte is sent.
    """

    def __init__(self, digest: bytes) -> None:
        """`digest` is the SHA-256 of the certificate in DER."""
        self._digest = digest
        self._context = _modern(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # `check` verifies

    async def __call__(self) -> ssl.SSLContext:
        """Return the context."""
        return self._context

    def check(self, certificate: bytes | None) -> None:
        """Raise AnotherCertificate unless `certificate` (DER) is the pinned one."""
        shown = hashlib.sha256(certificate or b"").digest()
        if not hmac.compare_digest(shown, self._digest):
            raise AnotherCertificate("another certificate than the pinned one")


def _modern(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
