"""An ACME order, and the answers with which the box proves its name (RFC 8555, 8737)."""

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
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from appliance.core.files import open_part
from appliance.core.settings import AcmeSettings
from appliance.tls.authority import to_pem

CHALLENGE_PATH = "/.well-known/acme-challenge/"
_PROTOCOL = "acme-tls/1"
_OFFER = bytes([len(_PROTOCOL)]) + _PROTOCOL.encode()  # as in the ALPN extension of a ClientHello
_CLIENT_HELLO = 1
_DETAIL_MAX = 200


class AcmeError(Exception):
    """Raised if no certificate was obtained. `reason` is one of `REASONS` in acme.py.

    `detail` is one line, usually the error message of the authority or of `acme.dns_hook`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        line = " ".join("".join(c if c.isprintable() else " " for c in detail).split())
        self.detail = line[:_DETAIL_MAX].rstrip(".")


class Challenges:
    """The answers to the authority's challenges during an order.

    The order runs in its own thread, which adds the answers.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}  # for HTTP-01: the file's content, by token
        self._contexts: dict[str, ssl.SSLContext] = {}  # for TLS-ALPN-01, by host name
        self._validating: WeakSet[ssl.SSLObject] = WeakSet()

    @contextmanager
    def answering(self, context: ssl.SSLContext) -> Iterator[None]:
        """Recognise the authority's TLS-ALPN-01 connections to `context` during the block.

        These connections offer the protocol `acme-tls/1`, but Python does not pass the offered
        protocols to `sni_callback`. OpenSSL calls the message callback earlier than that callback,
        with the whole ClientHello, which contains the protocols. The message callback is set only
        while an order is in progress.
        """
        context._msg_callback = self._on_message  # type: ignore[attr-defined] # noqa: SLF001
        try:
            yield
        finally:
            context._msg_callback = None  # type: ignore[attr-defined] # noqa: SLF001
            self.files.clear()
            self._contexts.clear()

    def show(self, name: str, key_authorization: str, folder: Path) -> None:
        """Answer TLS-ALPN-01 challenges for `name` from now on.

        Writes the certificate to a temporary file in `folder`, because OpenSSL loads it from a
        file.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols([_PROTOCOL])
        with open_part(folder / "challenge.pem") as file:
            file.write(_make_certificate(name, key_authorization))
            file.flush()
            context.load_cert_chain(file.name)
        self._contexts[name] = context

    def find(self, client: ssl.SSLObject, name: str) -> ssl.SSLContext | None:
        """Return the context that answers the challenge for `name`.

        Returns None if `client` is not the authority or there is no challenge for this name.
        """
        return self._contexts.get(name) if client in self._validating else None

    def _on_message(
        self, client: ssl.SSLObject, direction: str, _version: Any, _kind: Any, message: Any,
        content: bytes,
    ) -> None:  # fmt: skip
        if direction == "read" and message == _CLIENT_HELLO and _OFFER in content:
            self._validating.add(client)


@dataclass(frozen=True, slots=True)
class Order:
    """An order for a certificate for `name`.

    `folder` contains the account's key and the unfinished order, if any.
    """

    settings: AcmeSettings
    name: str
    folder: Path
    challenges: Challenges


def _make_certificate(name: str, key_authorization: str) -> bytes:
    """Return a key and a self-signed certificate for TLS-ALPN-01 as PEM (RFC 8737, section 3).

    The certificate contains the hash of `key_authorization`.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ACME challenge")])
    now = datetime.now(UTC)
    digest = b"\x04\x20" + sha256(key_authorization.encode()).digest()  # as a DER OCTET STRING
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
    return to_pem(key, (certificate,))
