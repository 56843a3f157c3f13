"""Checks of what leaves the box: letters to guests, webhooks to partners."""

import asyncio
import contextlib
import ssl

import aiosmtplib

from appliance.clock import format_instant
from appliance.data_directory import ENVIRONMENTS
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import NotExamined, Patient
from appliance.doctor.words import Instant
from appliance.settings import MailSettings
from appliance.store.endpoints import list_active_endpoints
from appliance.store.examination import read_delivery_health

MAIL_DEADLINE = 5.0
_WEEK = 7 * 24 * 3600 * 1000
_HOUR = 3600 * 1000
_MANY = 5  # failures in a row


def mail(patient: Patient) -> Check:
    """The settings with which letters are sent are complete."""
    found = patient.known_settings().mail
    if not found.host:
        return warn(
            "mail",
            "Aucun serveur de courrier : les invités ne reçoivent pas de lettre.",
            "There is no mail server: guests get no letters.",
            "Remplissez mail.host, mail.user, mail.password et mail.sender.",
            "Fill in mail.host, mail.user, mail.password and mail.sender.",
        )
    missing = "mail.sender" if not found.sender else (
        "mail.password" if found.user and not found.password else ""
    )  # fmt: skip
    if missing:
        return fail(
            "mail",
            "{missing} manque : aucune lettre ne part.",
            "{missing} is missing: no letter leaves.",
            "Remplissez-le dans settings.toml et redémarrez la box.",
            "Fill it in in settings.toml and restart the box.",
            missing=missing,
        )
    if found.security == "none" and found.password:
        return warn(
            "mail",
            "Le mot de passe du courrier voyage en clair.",
            "The mail password travels unencrypted.",
            "Choisissez starttls ou tls dans mail.security.",
            "Choose starttls or tls in mail.security.",
        )
    return well("mail", "Les lettres partent par {host}.", "Letters leave by {host}.",
                host=found.host)  # fmt: skip


def mail_server(patient: Patient) -> Check:
    """The mail server takes our sign-in, within 5 s. Only with `--online`."""
    found = patient.known_settings().mail
    if not patient.online or not found.host or not found.sender:
        raise NotExamined
    server = f"{found.host}:{found.port}"
    trouble = asyncio.run(_sign_in(found))
    if trouble is not None:
        return fail(
            "mail_server",
            "{server} ne prend pas nos lettres : {trouble}.",
            "{server} does not take our letters: {trouble}.",
            "Vérifiez mail.* dans settings.toml et l'accès à internet.",
            "Check mail.* in settings.toml and the way to the internet.",
            server=server,
            trouble=trouble,
        )
    return well("mail_server", "{server} nous accepte.", "{server} accepts us.", server=server)


def endpoints(patient: Patient) -> Check:
    """Partners' receivers take what they are sent."""
    failing, active = [], 0
    for environment in ENVIRONMENTS:
        with patient.rows(environment) as reader:
            found = list_active_endpoints(reader)
        active += len(found)
        failing += [e for e in found if e.failures_in_a_row >= _MANY or e.last_outcome == "blocked"]
    if failing:
        return warn(
            "endpoints",
            "Destinations de webhooks qui n'acceptent rien ({count}) : {named}.",
            "Webhook endpoints that take nothing ({count}): {named}.",
            "Prévenez le partenaire ; si l'adresse est bloquée, voyez webhooks.allow_networks.",
            "Tell the partner; if the address is blocked, see webhooks.allow_networks.",
            count=len(failing),
            named=", ".join(f"{e.url} ({e.last_outcome})" for e in failing[:3]),
        )
    return well("endpoints", "Destinations de webhooks : {count}, aucune en échec.",
                "Webhook endpoints: {count}, none failing.", count=active)  # fmt: skip


def deliveries(patient: Patient) -> Check:
    """No delivery died in the last 7 days, and none waits for long."""
    now, dead, pending, oldest = patient.clock.now(), 0, 0, None
    for environment in ENVIRONMENTS:
        with patient.rows(environment) as reader:
            found = read_delivery_health(reader, now - _WEEK)
        dead, pending = dead + found.dead, pending + found.pending
        if found.oldest_pending is not None:
            oldest = min(oldest or found.oldest_pending, found.oldest_pending)
    if dead:
        return warn(
            "deliveries",
            "{count} envois abandonnés en 7 jours.",
            "{count} deliveries died in the last 7 days.",
            "Réparez avec le partenaire, puis renvoyez-les : venuebox deliveries les montre.",
            "Mend it with the partner, then replay them: venuebox deliveries shows them.",
            count=dead,
        )
    if oldest is not None and now - oldest > _HOUR:
        return warn(
            "deliveries",
            "{pending} envois attendent, le plus ancien depuis {oldest}.",
            "{pending} deliveries wait, the oldest since {oldest}.",
            "Si la box est en marche et internet là, le partenaire ne répond pas.",
            "If the box runs and the internet is there, the partner does not answer.",
            pending=pending,
            oldest=Instant(oldest, format_instant(oldest)),
        )
    return well("deliveries", "{pending} envois attendent, aucun abandonné.",
                "{pending} deliveries wait, none died.", pending=pending)  # fmt: skip


async def _sign_in(found: MailSettings) -> str | None:
    """What goes wrong, without the server's own words: they may repeat an address."""
    client = aiosmtplib.SMTP(
        hostname=found.host,
        port=found.port,
        username=found.user or None,
        password=found.password or None,
        use_tls=found.security == "tls",
        start_tls=found.security == "starttls",
        local_hostname="localhost",  # else the library asks the name service first
        timeout=None,
    )
    try:
        async with asyncio.timeout(MAIL_DEADLINE):
            await client.connect()
    except aiosmtplib.SMTPAuthenticationError as error:
        return f"sign-in refused with {error.code}"
    except ssl.SSLError as error:
        return f"no trusted TLS ({error.reason})"
    except (OSError, ValueError, aiosmtplib.SMTPException) as error:
        return type(error).__name__
    finally:
        with contextlib.suppress(aiosmtplib.SMTPException):
            client.close()
    return None
