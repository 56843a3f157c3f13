"""What a receiver's certificate is checked against: never nothing.

Most receivers show one that this machine's list of authorities vouches for. For one in the
house the owner names its own authority, or the very certificate.
"""

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import Awaitable, Callable

# The context in which a certificate is checked. May read files; raises ssl.SSLError.
Trust = Callable[[], Awaitable[ssl.SSLContext]]


class AnotherCertificate(ssl.SSLCertVerificationError):
    """The receiver showed another certificate than the pinned one."""


class SystemTrust:
    """The certificates that this machine trusts, read when the first https receiver asks."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    async def __call__(self) -> ssl.SSLContext:
        """The context; reading the certificates takes 40 ms, which are a thread's."""
        if self._context is None:
            self._context = _modern(await asyncio.to_thread(ssl.create_default_context))
        return self._context


class OwnAuthority:
    """Nothing but what the given certificates have signed, name and dates checked as ever."""

    def __init__(self, ca: str) -> None:
        """`ca` is PEM, as `parse_ca` returns it. Any of its certificates ends the chain."""
        self._ca = ca
        self._context: ssl.SSLContext | None = None

    async def __call__(self) -> ssl.SSLContext:
        """The context; ssl.SSLError when the certificates cannot be used."""
        if self._context is None:
            context = _modern(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cadata=self._ca)
            self._context = context
        return self._context


class PinnedCertificate:
    """One certificate and no other, whoever signed it, whatever its name and dates say.

    The handshake proves that the receiver holds its key; `check` then has to follow, before
    the first byte is sent.
    """

    def __init__(self, digest: bytes) -> None:
        """`digest` is the SHA-256 of the certificate in DER."""
        self._digest = digest
        self._context = _modern(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # `check` does it

    async def __call__(self) -> ssl.SSLContext:
        """The context."""
        return self._context

    def check(self, certificate: bytes | None) -> None:
        """AnotherCertificate unless `certificate` (DER) is the pinned one."""
        shown = hashlib.sha256(certificate or b"").digest()
        if not hmac.compare_digest(shown, self._digest):
            raise AnotherCertificate("another certificate than the pinned one")


def _modern(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
