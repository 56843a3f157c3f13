"""The test environment's outbox: each stored email as its guest would see it.

For partners with a test key, and for people at the machine itself.
"""

import base64
from email.message import EmailMessage

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import NotFound, Unauthorized
from appliance.email.rendering import render_email
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT
from appliance.reservations.emails import list_emails
from appliance.reservations.request import parse_uuid
from web.api.authentication import Gate
from web.middleware import SECURE
from web.rendering import TEMPLATES, page_headers

_SCOPE = "reservations:read"
_SHOWN = 200
_HEADERS_SHOWN = ("Date", "From", "To", "Subject", "Message-ID", "Content-Language",
                  "List-Unsubscribe")  # fmt: skip


async def list_outbox(request: web.Request, gate: Gate) -> web.Response:
    """`GET /test/outbox`: the emails, newest first."""
    environment = _admit(request, gate)
    letters = await environment.database.read(list_emails, limit=_SHOWN)
    rows = [(letter, format_instant(letter.created_at)) for letter in letters]
    return _page(request, "outbox/list.html", rows=rows, shown=_SHOWN)


async def show_email(request: web.Request, gate: Gate) -> web.Response:
    """`GET /test/outbox/{id}`: headers, plain part and HTML part of an email."""
    environment = _admit(request, gate)
    letter_id = parse_uuid(request.match_info["id"])
    if letter_id is None:
        raise NotFound
    message = await render_email(environment, letter_id)
    return _page(
        request,
        "outbox/letter.html",
        subject=message["Subject"],
        headers=[(name, message[name]) for name in _HEADERS_SHOWN if name in message],
        plain=_part(message, "plain"),
        html=_with_pictures(message),
        attachments=[part.get_filename() for part in message.iter_attachments()],
        calendar=_calendar(message),
    )


OUTBOX_ROUTES = (("GET", "/test/outbox", list_outbox), ("GET", "/test/outbox/{id}", show_email))


def _admit(request: web.Request, gate: Gate) -> Environment:
    """Return the test environment for a test key with the scope, or for this machine."""
    if "Authorization" in request.headers:
        gate.admit(request, _SCOPE)
    elif not request.app[SECURE].is_this_machine(request):
        raise Unauthorized
    return request[ENVIRONMENT]


def _part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    return "" if body is None else str(body.get_content())


def _calendar(message: EmailMessage) -> str:
    files = [p for p in message.iter_attachments() if p.get_content_type() == "text/calendar"]
    return "".join(file.get_content() for file in files)


def _with_pictures(message: EmailMessage) -> str:
    """Return the HTML part with inline pictures embedded and links that leave the frame."""
    html = _part(message, "html")
    for part in message.walk():
        if part.get_content_maintype() == "image" and part["Content-ID"]:
            picture = base64.b64encode(part.get_payload(decode=True)).decode()  # type: ignore[arg-type]
            source = f"data:{part.get_content_type()};base64,{picture}"
            html = html.replace(f"cid:{part['Content-ID'].strip('<>')}", source)
    return html.replace("<head>", '<head><base target="_blank">', 1)


def _page(request: web.Request, template: str, **values: object) -> web.Response:
    text = request.config_dict[TEMPLATES].get_template(template).render(values)
    headers = page_headers(
        default_src="'none'", style_src="'unsafe-inline'", img_src="data:", form_action="'none'"
    )
    return web.Response(text=text, content_type="text/html", headers=headers)
