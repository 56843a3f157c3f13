"""Checks of https: the certificate in use, and whether the port answers with it."""

import socket
import ssl
from hashlib import sha256

from appliance.alone import is_alone
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import HEALTH_DEADLINE, NotExamined, Patient
from appliance.settings import ServerSettings
from appliance.store.venue import get_venue
from appliance.tls.names import own_addresses, wanted_names
from appliance.tls.showing import describe

_WARN_DAYS, _FAIL_DAYS = 21, 3  # the box renews 30 days before the end


def certificate(patient: Patient) -> Check:
    """It lasts, and it is for the names and addresses that the box has."""
    server = _server(patient)
    found = describe(patient.directory.root / "tls", patient.clock.now())
    if found is None:
        raise NotExamined
    days, imported = found["daysLeft"], found["imported"]
    remedy = (
        ("Importez-en un nouveau : venuebox tls import.", "Import a new one: venuebox tls import.")
        if imported
        else ("Lancez venuebox tls renew.", "Run venuebox tls renew.")
    )
    said = "Le certificat expire dans {days} jours.", "The certificate ends in {days} days."
    if days < _FAIL_DAYS:
        return fail("certificate", *said, *remedy, days=days)
    if days < _WARN_DAYS:
        return warn("certificate", *said, *remedy, days=days)
    if imported:
        return well("certificate", *said, days=days)
    with patient.rows("live") as reader:
        wanted = wanted_names(get_venue(reader).slug, server, own_addresses())
    missing = sorted({*wanted.dns, *wanted.addresses} - set(found["names"]))
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
    """Somebody speaks TLS on `server.tls_port`, with the certificate of the files."""
    server = _server(patient)
    found = describe(patient.directory.root / "tls", patient.clock.now())
    if not patient.runs or found is None:
        raise NotExamined
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is compared below
    host = "127.0.0.1" if server.host in {"0.0.0.0", "::"} else server.host  # noqa: S104 - compared
    where = f"{host}:{server.tls_port}"
    try:
        with (
            socket.create_connection((host, server.tls_port), HEALTH_DEADLINE) as plain,
            context.wrap_socket(plain) as secure,
        ):
            shown = secure.getpeercert(binary_form=True) or b""
    except OSError:
        return fail(
            "tls_port",
            "Personne ne répond en https sur {where}.",
            "Nobody answers https at {where}.",
            "Redémarrez la box ; si le port est pris, changez server.tls_port.",
            "Restart the box; if the port is taken, change server.tls_port.",
            where=where,
        )
    if sha256(shown).hexdigest() != found["fingerprint"]:
        return warn(
            "tls_port",
            "{where} montre un autre certificat que celui de la box.",
            "{where} shows another certificate than the box's.",
            "Redémarrez la box.",
            "Restart the box.",
            where=where,
        )
    return well("tls_port", "https répond sur {where}.", "https answers at {where}.", where=where)


def _server(patient: Patient) -> ServerSettings:
    """The settings of a box that speaks TLS; NotExamined for the others."""
    server = patient.known_settings().server
    if is_alone(server.host) or not server.tls_port:
        raise NotExamined
    return server
