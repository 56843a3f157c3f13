"""The start page, and `/trust`, which explains how to make a device trust the box."""

import uuid

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from appliance.checks.network import NONCE, PROOF_PATH
from appliance.core.errors import NotFound, Unavailable
from appliance.http.request import ENVIRONMENT, answer
from appliance.tls.certificates import Certificates
from appliance.venue.model import get_venue
from web.middleware import SECURE
from web.rendering import LANGUAGES, public_page

CERTIFICATES: web.AppKey[Certificates | None] = web.AppKey("certificates")


async def show_home(request: web.Request) -> web.Response:
    """`GET /`: show the start page."""
    venue = await request[ENVIRONMENT].database.read(get_venue)
    hidden = set() if venue.booking_page else {"/book"}
    hidden |= set() if request.app[SECURE].shows_portal(request) else {"/portal"}
    values: dict[str, object] = {"venue": venue.name, "hidden": hidden}
    return public_page(request, "home.html", values, request.config_dict[LANGUAGES].of(request))


async def show_guide(request: web.Request) -> web.Response:
    """`GET /trust`: show how to make this device trust the box, and whether it already does."""
    certificates = request.app[CERTIFICATES]
    base = request.app[SECURE].base_for(request)
    venue = await request[ENVIRONMENT].database.read(get_venue)
    values: dict[str, object] = {
        "venue": venue.name,
        "secure": base,
        "own_authority": certificates is not None,
        "fingerprint": certificates.fingerprint() if certificates is not None else "",
    }
    language = request.config_dict[LANGUAGES].of(request)
    # The page sends a request to `base` to check whether the browser trusts it.
    connect_src = f"'self' {base or ''}".strip()
    return public_page(request, "trust.html", values, language, connect_src=connect_src)


async def send_authority(request: web.Request) -> web.Response:
    """`GET /trust/ca.crt`: return the box's authority certificate, for installation on a device."""
    return web.Response(
        body=_read_authority(request),
        content_type="application/x-x509-ca-cert",
        headers={"Content-Disposition": 'attachment; filename="venuebox-ca.crt"'},
    )


async def send_profile(request: web.Request) -> web.Response:
    """`GET /trust/ca.mobileconfig`: return the authority's certificate as a profile for iPhones."""
    der = _read_authority(request)
    venue = await request[ENVIRONMENT].database.read(get_venue)
    return web.Response(
        body=profile(venue.name, der),
        content_type="application/x-apple-aspen-config",
        headers={"Content-Disposition": 'attachment; filename="venuebox.mobileconfig"'},
    )


async def confirm_trust(_request: web.Request) -> web.Response:
    """`GET /trust/check`: respond with 200.

    The trust page loads this over https, which succeeds only if the browser trusts the box.
    """
    return web.Response(text="yes", headers={"Cache-Control": "no-store"})


async def prove_identity(request: web.Request) -> web.Response:
    """`GET /.well-known/venuebox/{nonce}`: prove to `venuebox doctor --outside` which box answers.

    A box of the same venue asks too, before it serves (web/mdns.py). Raises NotFound if the
    nonce is not 32 hex digits.
    """
    nonce = request.match_info["nonce"]
    if NONCE.fullmatch(nonce) is None:
        raise NotFound
    scheme = "https" if request.app[SECURE].is_private(request) else "http"
    return answer({"proof": request[ENVIRONMENT].keyring.prove(nonce), "scheme": scheme})


def profile(venue: str, der: bytes) -> bytes:
    """Return a configuration profile that installs the authority's certificate `der` on iPhones.

    The same input always gives the same profile.
    """
    import plistlib  # noqa: PLC0415 - imports an XML parser, which nothing else needs

    digest = x509.load_der_x509_certificate(der).fingerprint(hashes.SHA256())
    authority = {
        **_payload("com.apple.security.root", digest[:16], venue),
        "PayloadCertificateFileName": "venuebox-ca.crt",
        "PayloadContent": der,
    }
    outer = _payload("Configuration", digest[16:], f"{venue} (venuebox)")
    return plistlib.dumps({**outer, "PayloadContent": [authority]})


def _payload(kind: str, random: bytes, name: str) -> dict[str, object]:
    identity = uuid.UUID(bytes=random, version=4)
    return {
        "PayloadDisplayName": name,
        "PayloadIdentifier": f"app.venuebox.{identity}",
        "PayloadType": kind,
        "PayloadUUID": str(identity),
        "PayloadVersion": 1,
    }


def _read_authority(request: web.Request) -> bytes:
    certificates = request.app[CERTIFICATES]
    if certificates is None:
        raise NotFound
    try:
        return certificates.give_authority()
    except OSError:  # the disk is full, so the download cannot be recorded
        raise Unavailable from None


PUBLIC_ROUTES = (
    ("GET", "/", show_home),
    ("GET", "/trust", show_guide),
    ("GET", "/trust/ca.crt", send_authority),
    ("GET", "/trust/ca.mobileconfig", send_profile),
    ("GET", "/trust/check", confirm_trust),
    ("GET", PROOF_PATH + "/{nonce}", prove_identity),
)
