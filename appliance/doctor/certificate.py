"""Checks of https: the certificates in use, and whether the port answers with them."""

import socket
import ssl
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from appliance.alone import is_alone
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import HEALTH_DEADLINE, NotExamined, Patient
from appliance.settings import ServerSettings
from appliance.store.venue import get_venue
from appliance.tls.files import describe
from appliance.tls.names import Names, own_addresses, wanted_names

_WARN_DAYS, _FAIL_DAYS = 21, 3  # the box renews 30 days before the end


def certificate(patient: Patient) -> Check:
    """They last, and each is for the names that it is to be shown under."""
    server, found = _look(patient)
    imported, covered = found["imported"], _imported_names(found)
    own_days, days = found["daysLeft"], min(found["daysLeft"], (imported or found)["daysLeft"])
    remedy = (
        ("Importez-en un nouveau : venuebox tls import.", "Import a new one: venuebox tls import.")
        if days < own_days
        else ("Lancez venuebox tls renew.", "Run venuebox tls renew.")
    )
    said = "Le certificat expire dans {days} jours.", "The certificate ends in {days} days."
    if days < _FAIL_DAYS:
        return fail("certificate", *said, *remedy, days=days)
    if days < _WARN_DAYS:
        return warn("certificate", *said, *remedy, days=days)
    url = urlsplit(server.app_url)
    host = url.hostname or ""
    if imported and url.scheme == "https" and not covered.cover(host):
        return warn(
            "certificate",
            "Le certificat importé vaut pour {named}, et les invités joignent la box sur {host}.",
            "The imported certificate is for {named}, and guests reach the box at {host}.",
            "Importez un certificat pour l'adresse de server.app_url, ou oubliez celui-ci : "
            "venuebox tls forget.",
            "Import a certificate for the address in server.app_url, or forget this one: "
            "venuebox tls forget.",
            named=", ".join(imported["names"][:5]),
            host=host,
        )
    with patient.rows("live") as reader:
        wanted = wanted_names(get_venue(reader).slug, server, own_addresses())
    unnamed = {*wanted.dns, *wanted.addresses} - set(found["names"])
    missing = sorted(name for name in unnamed if not covered.cover(name))
    if missing:
        return warn(
            "certificate",
            "Le certificat ne vaut pas pour {named}.",
            "The certificate is not for {named}.",
            "Lancez venuebox tls renew ; si rien ne change, venuebox tls renew --authority, "
            "puis refaites la confiance sur chaque téléphone : /trust.",
            "Run venuebox tls renew; if nothing changes, venuebox tls renew --authority, "
            "then have each phone trust the box anew: /trust.",
            named=", ".join(missing[:5]),
        )
    return well("certificate", *said, days=days)


def tls_port(patient: Patient) -> Check:
    """Somebody speaks TLS on `server.tls_port`, and shows the certificates of the files."""
    server, found = _look(patient)
    if not patient.runs:
        raise NotExamined
    host = "127.0.0.1" if server.host in {"0.0.0.0", "::"} else server.host  # noqa: S104 - compared
    where = f"{host}:{server.tls_port}"
    covered = _imported_names(found)
    expected = {"": found["fingerprint"]}
    for name in [name.replace("*", "www") for name in covered.dns][:1]:
        expected[name] = (found["imported"] if covered.cover(name) else found)["fingerprint"]
    try:
        is_shown = all(_ask(host, server.tls_port, name) == expected[name] for name in expected)
    except OSError:
        return fail(
            "tls_port",
            "Personne ne répond en https sur {where}.",
            "Nobody answers https at {where}.",
            "Redémarrez la box ; si le port est pris, changez server.tls_port.",
            "Restart the box; if the port is taken, change server.tls_port.",
            where=where,
        )
    if not is_shown:
        return warn(
            "tls_port",
            "{where} montre un autre certificat que celui de la box.",
            "{where} shows another certificate than the box's.",
            "Redémarrez la box.",
            "Restart the box.",
            where=where,
        )
    return well("tls_port", "https répond sur {where}.", "https answers at {where}.", where=where)


def _imported_names(found: dict[str, Any]) -> Names:
    return Names(tuple(found["imported"]["names"]) if found["imported"] else (), ())


def _ask(host: str, port: int, name: str) -> str:
    """The SHA-256 of the certificate that is shown to who asks for `name`, or for none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is compared
    with (
        socket.create_connection((host, port), HEALTH_DEADLINE) as plain,
        context.wrap_socket(plain, server_hostname=name or None) as secure,
    ):
        return sha256(secure.getpeercert(binary_form=True) or b"").hexdigest()


def _look(patient: Patient) -> tuple[ServerSettings, dict[str, Any]]:
    """Settings and certificates of a box that speaks TLS; NotExamined for the others."""
    server = patient.known_settings().server
    found = describe(patient.directory.root / "tls", patient.clock.now())
    if is_alone(server.host) or not server.tls_port or found is None:
        raise NotExamined
    return server, found
