"""Order one certificate from an ACME authority (RFC 8555), with certbot's `acme` library.

All functions block, so call them in a separate thread. Importing the library takes half a second,
so import this module only when a certificate is due.
"""

import logging
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from acme import challenges as library
from acme import client, errors, messages
from acme.crypto_util import make_csr
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from josepy.errors import Error as JoseError
from josepy.jwa import ES256
from josepy.jwk import JWK, JWKEC

from appliance.core.files import atomic_write, read_private
from appliance.core.settings import AcmeSettings
from appliance.tls.authority import to_pem
from appliance.tls.certificates import AcmeError, Order

log = logging.getLogger(__name__)

ACCOUNT = "acme-account.pem"
_REQUEST_SECONDS = 20
_POLL_SECONDS = 120  # time limit for each challenge, and for the certificate afterwards
_HOOK_SECONDS = 300
# Maps the authority's error types to REASONS in acme.py. All other types mean "refused".
_REASONS = {
    "dns": "dns", "unknownHost": "dns", "dnssec": "dns",
    "connection": "unreached", "tls": "unreached", "incorrectResponse": "unreached",
    "unauthorized": "unreached",
    "caa": "caa",
    "rateLimited": "rate_limited",
    "externalAccountRequired": "account", "invalidContact": "account",
    "unsupportedContact": "account", "invalidEmail": "account", "accountDoesNotExist": "account",
    "serverInternal": "no_answer",
}  # fmt: skip


# The library no longer supports TLS-ALPN-01, so these two classes are added to its registry. The
# library then creates the challenge from the authority's JSON.
@library.ChallengeResponse.register
class TlsAlpn01Response(library.KeyAuthorizationChallengeResponse):
    """The message that asks the authority to connect and check the answer."""

    typ = "tls-alpn-01"


@library.Challenge.register
class TlsAlpn01(library.KeyAuthorizationChallenge):
    """A challenge that is answered in a TLS handshake (RFC 8737)."""

    typ = "tls-alpn-01"
    response_cls = TlsAlpn01Response

    def validation(self, account_key: JWK, **_unused: Any) -> str:
        """Return the key authorization."""
        return self.key_authorization(account_key)


def obtain(order: Order) -> tuple[bytes, bytes, str]:
    """Return (certificate with its chain, private key, account's URI). The first two are PEM.

    Raises AcmeError.
    """
    try:
        account = _load_account_key(order.folder / ACCOUNT)
        connection = _sign_in(order.settings, account)
        chain, key = _order(order, connection, account)
    except AcmeError:
        raise
    except errors.ValidationError as error:
        raise _explain_failure(error) from None
    except errors.IssuanceError as error:
        raise _explain(error.error) from None
    except messages.Error as error:
        # Here the error is not about a challenge, so `unauthorized` is about the account.
        is_account = error.code == "unauthorized"
        raise AcmeError("account", str(error.detail)) if is_account else _explain(error) from None
    except errors.TimeoutError:
        raise AcmeError("no_answer", "the order was not completed in time") from None
    except OSError as error:
        if error.errno is None:  # an error of the library's HTTP client, which sets no errno
            raise AcmeError("no_answer", _cause(error)) from None
        raise AcmeError("refused", str(error)) from None
    except (errors.Error, JoseError, ValueError, LookupError, TypeError, AttributeError) as error:
        # The library does not check all data from the authority, so invalid data may raise any of
        # these errors.
        raise AcmeError("refused", f"{type(error).__name__}: {error}") from None
    return chain, key, connection.net.account.uri if connection.net.account else ""


def _load_account_key(path: Path) -> JWKEC:
    """Return the account's key. Create it if it does not exist yet."""
    try:
        key = serialization.load_pem_private_key(read_private(path), None)
    except FileNotFoundError:
        key = ec.generate_private_key(ec.SECP256R1())
        atomic_write(path, to_pem(key, ()))
    return JWKEC(key=key)


def _sign_in(settings: AcmeSettings, key: JWKEC) -> client.ClientV2:
    """Register an account for `key`, or find the account that already has this key."""
    trusted: Any = settings.ca_file or True  # True means the system's authorities
    net = client.ClientNetwork(
        key, alg=ES256, verify_ssl=trusted, user_agent="venuebox", timeout=_REQUEST_SECONDS
    )
    directory = client.ClientV2.get_directory(settings.directory, net)
    connection = client.ClientV2(directory, net)
    account = messages.NewRegistration.from_data(terms_of_service_agreed=settings.agree_terms)
    try:
        connection.new_account(account)
    except errors.ConflictError as known:
        body = messages.Registration()
        net.account = messages.RegistrationResource(body=body, uri=known.location)
    return connection


def _order(order: Order, connection: client.ClientV2, account: JWKEC) -> tuple[bytes, bytes]:
    key = to_pem(ec.generate_private_key(ec.SECP256R1()), ())
    opened = connection.new_order(make_csr(key, [order.name]))
    for authorization in opened.authorizations:
        if authorization.body.status != messages.STATUS_VALID:
            challenge = _choose(order.settings.challenge, authorization)
            with _answering(order, challenge.chall, account):
                connection.answer_challenge(challenge, challenge.chall.response(account))
                connection.poll_authorizations(opened, _deadline(_POLL_SECONDS))
    done = connection.finalize_order(opened, _deadline(_POLL_SECONDS))
    return done.fullchain_pem.encode(), key


def _choose(kind: str, authorization: messages.AuthorizationResource) -> messages.ChallengeBody:
    """Return the authority's challenge of this kind. Raises AcmeError if it offers none."""
    offered = authorization.body.challenges
    for challenge in offered:
        if challenge.chall.typ == kind:
            return challenge
    kinds = ", ".join(str(challenge.chall.to_json().get("type")) for challenge in offered)
    raise AcmeError("refused", f"the authority offers only {kinds} challenges, not {kind}")


@contextmanager
def _answering(
    order: Order, challenge: library.KeyAuthorizationChallenge, account: JWKEC
) -> Iterator[None]:
    """Answer the challenge during the block. For dns-01, the hook program publishes the answer."""
    proof = challenge.key_authorization(account)
    if challenge.typ == "tls-alpn-01":
        order.challenges.show(order.name, proof, order.folder)
        yield
    else:
        digest = urlsafe_b64encode(sha256(proof.encode()).digest()).rstrip(b"=").decode()
        record = (f"_acme-challenge.{order.name}", digest)
        _run_hook(order.settings.dns_hook, "add", *record)
        try:
            yield
        finally:
            try:
                _run_hook(order.settings.dns_hook, "remove", *record)
            except AcmeError as error:
                log.warning("acme: DNS record %s was not removed: %s", record[0], error.detail)


def _run_hook(program: str, *arguments: str) -> None:
    """Run `acme.dns_hook`. Raises AcmeError if it fails or takes longer than 5 minutes."""
    try:
        done = subprocess.run(  # noqa: S603 - the owner's own program
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=_HOOK_SECONDS, text=True, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise AcmeError("dns_hook", f"{arguments[0]} took longer than 5 minutes") from None
    except OSError as error:
        raise AcmeError("dns_hook", f"{program}: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise AcmeError("dns_hook", said[-1] if said else f"exit status {done.returncode}")


def _explain_failure(failed: errors.ValidationError) -> AcmeError:
    for authorization in failed.failed_authzrs:
        for challenge in authorization.body.challenges:
            if challenge.error is not None:
                return _explain(challenge.error)
    return AcmeError("refused", "the challenge failed")


def _explain(error: messages.Error) -> AcmeError:
    """Convert the authority's error to an AcmeError. If it contains several, use the first."""
    while error.subproblems:
        error = error.subproblems[0]
    detail = error.detail or error.title or str(error.typ)
    return AcmeError(_REASONS.get(error.code or "", "refused"), detail)


def _cause(error: BaseException) -> str:
    """Return the root cause of a failed request, without the description of the connection."""
    if "timed out" in str(error):
        return "timed out"
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _cause(reason)
    text = str(getattr(error, "strerror", None) or error)
    return text.partition("): ")[2] or text


def _deadline(seconds: int) -> datetime:
    return datetime.now() + timedelta(seconds=seconds)  # noqa: DTZ005 - the library uses local time
