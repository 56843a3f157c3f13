"""An ACME order, and the box's answers while an authority checks its name (RFC 8555, 8737)."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from appliance.core.files import open_part
from appliance.core.settings import AcmeSettings

CHALLENGE_PATH = "/.well-known/acme-challenge/"
_PROTOCOL = "acme-tls/1"
_OFFER = bytes([len(_PROTOCOL)]) + _PROTOCOL.encode()  # as in the ALPN extension of a ClientHello
_CLIENT_HELLO = 1
_DETAIL_MAX = 200


class AcmeError(Exception):
    """No certificate was obtained. `reason` is one of `REASONS` in acme.py.

    `detail` is one line, mostly in the words of the authority or of the hook.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        line = " ".join("".join(c if c.isprintable() else " " for c in detail).split())
        self.detail = line[:_DETAIL_MAX].rstrip(".")


class Challenges:
    """The answers that the box gives at the moment. An order adds them from its own thread."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}  # HTTP-01: content by token
        self._contexts: dict[str, ssl.SSLContext] = {}  # TLS-ALPN-01: by name
        self._validating: WeakSet[ssl.SSLObject] = WeakSet()

    @contextmanager
    def answering(self, context: ssl.SSLContext) -> Iterator[None]:
        """Let connections that use `context` be recognised during the block.

        Python's `sni_callback` does not know which protocols a client offers. OpenSSL calls the
        message callback with the whole ClientHello before that. It is not needed at other times,
        so it is set only while an order is in progress.
        """
        context._msg_callback = self._on_message  # type: ignore[attr-defined] # noqa: SLF001
        try:
            yield
        finally:
            context._msg_callback = None  # type: ignore[attr-defined] # noqa: SLF001
            self.files.clear()
            self._contexts.clear()

    def show(self, name: str, key_authorization: str, folder: Path) -> None:
        """Answer TLS-ALPN-01 for `name`. `folder` holds the certificate while it is loaded."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols([_PROTOCOL])
        with open_part(folder / "challenge.pem") as file:
            file.write(_make_certificate(name, key_authorization))
            file.flush()
            context.load_cert_chain(file.name)
        self._contexts[name] = context

    def find(self, client: ssl.SSLObject, name: str) -> ssl.SSLContext | None:
        """Return the context with which to answer an authority; None for every other client."""
        return self._contexts.get(name) if client in self._validating else None

    def _on_message(
        self, client: ssl.SSLObject, direction: str, _version: Any, _kind: Any, message: Any,
        content: bytes,
    ) -> None:  # fmt: skip
        if direction == "read" and message == _CLIENT_HELLO and _OFFER in content:
            self._validating.add(client)


@dataclass(frozen=True, slots=True)
class Order:
    """What to order: a certificate for `name`. `folder` holds the account and the open order."""

    settings: AcmeSettings
    name: str
    folder: Path
    challenges: Challenges


def _make_certificate(name: str, key_authorization: str) -> bytes:
    """Return a key and a self-signed certificate that prove the account (RFC 8737, section 3)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ACME challenge")])
    now = datetime.now(UTC)
    digest = b"\x04\x20" + sha256(key_authorization.encode()).digest()  # a DER OCTET STRING
    proof = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31"), digest)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(proof, critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, form, serialization.NoEncryption())
    return private + certificate.public_bytes(pem)
