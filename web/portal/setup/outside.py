"""The steps that connect the box: mail, the address that guests use, the first phone.

Settings are written to settings.toml and hold from the next start on, as every page says.
"""

import asyncio
from dataclasses import asdict, replace

from aiohttp import web

from appliance.actions.offer_pairing import offer_pairing
from appliance.environment import terminal_base, trust_page
from appliance.errors import Refusal
from appliance.model.booking import is_email
from appliance.model.qr import link_svg
from appliance.model.terminal import NAME_MAX, ROLES
from appliance.settings import MailSettings
from web.portal.answer import language_of
from web.portal.box.letters import try_letter
from web.portal.box.saved import save_settings, saved_settings
from web.portal.context import HOUSE, SESSION
from web.portal.forms import Form, field_error, read_form
from web.portal.guard import staff_of
from web.portal.integrations.once import INTEGRATIONS
from web.portal.setup.progress import go_on, step_page

SECURITIES = ("starttls", "tls", "none")
_PORT_MAX = 65535
_HOST_MAX = 253
_PASSWORD_MAX = 1000
_MAIL_FIELDS = ("host", "port", "security", "user", "sender", "recipient")
_TRIED_SECONDS = 1800.0


async def show_mail(request: web.Request) -> web.Response:
    """`GET /portal/setup/mail`: by which server letters leave."""
    return await _mail_page(request, _as_stored(saved_settings(request).mail))


async def save_mail(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/mail`: try a letter with what was typed, or keep it."""
    form, stored = await read_form(request), saved_settings(request).mail
    known = replace(stored, host=_host(form), password=_password(request, form, stored))
    try:
        wished = _mail(form, known)
        if form.text("do") == "try":
            _check_trial(wished, form)
    except Refusal as refusal:
        _keep_tried(request, known, stored)
        return await _mail_page(request, _as_typed(form, known), refusal=refusal)
    if form.text("do") == "try":
        result = await try_letter(request, wished, form.text("recipient", 254))
        _keep_tried(request, wished, stored)
        return await _mail_page(request, _as_typed(form, wished), result=result)
    if wished.host and wished.user and not wished.password:
        problem = language_of(request).gettext(
            "Nothing was saved: no password is known for this user name and this mail server. "
            "Please type it."
        )
        answer = await _mail_page(request, _as_typed(form, wished), problem=problem)
        answer.set_status(400)
        return answer
    try:
        await save_settings(
            request,
            {"mail.host": wished.host, "mail.port": wished.port, "mail.security": wished.security,
             "mail.user": wished.user, "mail.password": wished.password,
             "mail.sender": wished.sender},
        )  # fmt: skip
    except Refusal as refusal:
        _keep_tried(request, wished, stored)
        return await _mail_page(request, _as_typed(form, wished), refusal=refusal)
    return await go_on(request, "mail", "saved-for-later")


async def show_address(request: web.Request) -> web.Response:
    """`GET /portal/setup/address`: where guests find the box."""
    return await _address_page(request, saved_settings(request).server.app_url)


async def save_address(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/address`: the base of every link from the next start on."""
    form = await read_form(request)
    try:
        url = form.text("app_url", 500).rstrip("/")
        await save_settings(request, {"server.app_url": url})
    except Refusal as refusal:
        return await _address_page(request, form.typed().get("app_url", ""), refusal)
    return await go_on(request, "address", "saved-for-later")


async def show_phone(request: web.Request) -> web.Response:
    """`GET /portal/setup/phone`: what a phone at the door needs."""
    return await _phone_page(request, {})


async def pair_phone(request: web.Request) -> web.StreamResponse:
    """`POST /portal/setup/phone`: a link that makes one phone a terminal, once."""
    form, house = await read_form(request), request[HOUSE]
    if form.text("do") == "done":
        return await go_on(request, "phone")
    try:
        name, role = _phone(form)
    except Refusal as refusal:
        return await _phone_page(request, {"typed": form.typed()}, refusal)
    actor = f"staff:{staff_of(request).id}"
    offered = await house.database.write(offer_pairing, name, role, actor=actor)
    url = offered.link(terminal_base(house.links, house.settings.server))
    picture = await asyncio.to_thread(link_svg, url)
    return await _phone_page(request, {"code": offered.code, "url": url, "picture": picture})


def _phone(form: Form) -> tuple[str, str]:
    name, role = form.text("name", NAME_MAX), form.text("role") or "override"
    if not name:
        raise field_error("name", "un nom.", "a name.")
    if role not in ROLES:
        raise field_error("role", "un rôle de la liste.", "a role of the list.")
    return name, role


def _mail(form: Form, known: MailSettings) -> MailSettings:
    """What was typed; the password is what is `known` of it."""
    host, security = form.text("host", _HOST_MAX), form.text("security")
    if security not in SECURITIES:
        raise field_error("security", "starttls, tls ou none.", "starttls, tls or none.")
    return replace(
        known,
        host=host,
        port=form.whole("port", 1, _PORT_MAX),
        security=security,
        user=form.text("user"),
        sender=form.text("sender", 254),
    )


def _check_trial(mail: MailSettings, form: Form) -> None:
    """What a test letter cannot do without."""
    if not mail.host:
        raise field_error(
            "host", "un serveur, tel que smtp.example.com.", "a server, such as smtp.example.com."
        )
    if not is_email(form.text("recipient", 254)):
        raise field_error(
            "recipient", "l'adresse où l'envoyer.", "the address that it is to be sent to."
        )


def _as_stored(mail: MailSettings) -> dict[str, object]:
    """What the page shows of it: no password, only that there is one."""
    return {**asdict(mail), "password": bool(mail.password), "recipient": ""}


def _as_typed(form: Form, mail: MailSettings) -> dict[str, object]:
    shown = {name: text for name, text in form.typed().items() if name != "password"}
    return {**_as_stored(mail), **shown}


def _host(form: Form) -> str:
    return form.typed().get("host", "").strip()


def _password(request: web.Request, form: Form, stored: MailSettings) -> str:
    """An empty one is the one that was tried, or is stored, for that server."""
    return (
        form.secret("password")[:_PASSWORD_MAX]
        or _take_tried(request, _host(form))
        or _stored_password(stored, _host(form))
    )


def _stored_password(stored: MailSettings, host: str) -> str:
    """It is sent to no other server than the one it was stored for: nobody is to collect it."""
    return stored.password if host.casefold() == stored.host.casefold() else ""


def _keep_tried(request: web.Request, tried: MailSettings, stored: MailSettings) -> None:
    """No page says a password again: this session may save what it tried for half an hour."""
    if tried.password and tried.password != _stored_password(stored, tried.host):
        once, subject = request.app[INTEGRATIONS].once, _tried_at(tried.host)
        once.put_secret(request[SESSION].id, subject, tried.password, _TRIED_SECONDS)


def _take_tried(request: web.Request, host: str) -> str | None:
    return request.app[INTEGRATIONS].once.take_secret(request[SESSION].id, _tried_at(host))


def _tried_at(host: str) -> str:
    return f"mail password at {host.casefold()}"


async def _mail_page(
    request: web.Request,
    mail: dict[str, object],
    *,
    result: object = None,
    problem: str | None = None,
    refusal: Refusal | None = None,
) -> web.Response:
    values: dict[str, object] = {"mail": mail, "securities": SECURITIES, "result": result}
    if problem is not None:
        values["problem"] = problem
    return await step_page(request, "mail", values, refusal, _MAIL_FIELDS)


async def _address_page(
    request: web.Request, url: str, refusal: Refusal | None = None
) -> web.Response:
    values: dict[str, object] = {"app_url": url, "in_force": request[HOUSE].links.base}
    return await step_page(request, "address", values, refusal, ("app_url",))


async def _phone_page(
    request: web.Request, offer: dict[str, object], refusal: Refusal | None = None
) -> web.Response:
    house = request[HOUSE]
    base = terminal_base(house.links, house.settings.server)
    values: dict[str, object] = {
        "typed": {},
        "code": None,
        "url": None,
        "picture": None,
        "is_https": base.startswith("https:"),
        "trust": trust_page(house.links, base),
        **offer,
    }
    return await step_page(request, "phone", values, refusal, ("name", "role"))
