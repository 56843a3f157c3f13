"""The pages `/test/outbox`: emails that the test environment stores instead of sending them.

Access requires a test API key or a browser on the box itself.
"""

import base64
from email.message import EmailMessage

from aiohttp import web

from appliance.clock import format_instant
from appliance.core.errors import NotFound, Unauthorized
from appliance.email.rendering import render_email
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT
from appliance.http.security_headers import page_headers
from appliance.reservations.email_queue import list_emails
from appliance.reservations.request import parse_uuid
from web.middleware import SECURE, SERVICES
from web.rendering import TEMPLATES

_SCOPE = "reservations:read"
_SHOWN = 200
_HEADERS_SHOWN = ("Date", "From", "To", "Subject", "Message-ID", "Content-Language",
                  "List-Unsubscribe")  # fmt: skip


async def list_outbox(request: web.Request) -> web.Response:
    """`GET /test/outbox`: list the latest 200 emails, newest first."""
    environment = _admit(request)
    emails = await environment.database.read(list_emails, limit=_SHOWN)
    rows = [(email, format_instant(email.created_at)) for email in emails]
    return _page(request, "outbox/list.html", rows=rows, shown=_SHOWN)


async def show_email(request: web.Request) -> web.Response:
    """`GET /test/outbox/{id}`: show an email's headers, plain text, HTML and attachments."""
    environment = _admit(request)
    email_id = parse_uuid(request.match_info["id"])
    if email_id is None:
        raise NotFound
    message = await render_email(environment, email_id)
    return _page(
        request,
        "outbox/letter.html",
        subject=message["Subject"],
        headers=[(name, message[name]) for name in _HEADERS_SHOWN if name in message],
        plain=_part(message, "plain"),
        html=_html_part(message),
        attachments=[part.get_filename() for part in message.iter_attachments()],
        calendar="".join(
            file.get_content()
            for file in message.iter_attachments()
            if file.get_content_type() == "text/calendar"
        ),
    )


OUTBOX_ROUTES = (("GET", "/test/outbox", list_outbox), ("GET", "/test/outbox/{id}", show_email))


def _admit(request: web.Request) -> Environment:
    """Return the test environment.

    Raises Unauthorized if the request neither has a test API key nor comes from this machine, and
    HttpsRequired if the key came over plain http.
    """
    if "Authorization" in request.headers:
        request.app[SECURE].demand(request)
        request[SERVICES].gate.admit(request, _SCOPE, "key")
    elif not request.app[SECURE].is_this_machine(request):
        raise Unauthorized
    return request[ENVIRONMENT]


def _part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    return "" if body is None else str(body.get_content())


def _html_part(message: EmailMessage) -> str:
    """Return the HTML part. Pictures become data URLs, and links open in a new tab."""
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
