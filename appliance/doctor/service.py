"""Checks of the service: does the box run and answer, can guests and scanners reach it."""

import os
from urllib.parse import urlsplit

from appliance.alone import is_alone
from appliance.data_directory import ENVIRONMENTS
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import NotExamined, Patient
from appliance.store.examination import list_terminal_names
from appliance.tls.names import own_addresses

_OK = 200


def box(patient: Patient) -> Check:
    """Whether a box serves this directory, and says that it is well within 2 s."""
    if not patient.runs:
        return warn(
            "box",
            "La box n'est pas en marche.",
            "The box is not running.",
            "Démarrez-la : venuebox serve.",
            "Start it: venuebox serve.",
        )
    answers = {}
    for url in _addresses(patient):
        answers[url] = patient.machine.ask(f"{url}/health")
        if answers[url] == _OK:
            return well("box", "La box est en marche et répond.", "The box is running and answers.")
    if any(answers.values()):
        return fail(
            "box",
            "La box est en marche, mais ne peut plus écrire.",
            "The box is running, but cannot write any more.",
            "Regardez le disque ci-dessus et le journal de la box, puis redémarrez-la.",
            "Look at the disk above and at the log of the box, then restart it.",
        )
    return fail(
        "box",
        "La box est en marche, mais ne répond pas sur {where}.",
        "The box is running, but does not answer at {where}.",
        "Redémarrez-la ; si elle écoute ailleurs, indiquez-le dans server.port.",
        "Restart it; if it listens elsewhere, say so in server.port.",
        where=", ".join(answers) or "?",
    )


def settings(patient: Patient) -> Check:
    """The settings can be read, and guests can use the address in them."""
    if isinstance(patient.settings, str):
        return fail(
            "settings",
            "Les réglages ne peuvent pas être lus : {trouble}.",
            "The settings cannot be read: {trouble}.",
            "Corrigez settings.toml : la box ne démarre pas sans cela.",
            "Correct settings.toml: the box does not start without it.",
            trouble=patient.settings,
        )
    url = patient.settings.server.app_url
    if not url:
        return warn(
            "settings",
            "server.app_url est vide : les liens des invités portent une adresse devinée.",
            "server.app_url is empty: guests' links carry a guessed address.",
            "Indiquez dans settings.toml l'adresse par laquelle les invités joignent la box.",
            "Set in settings.toml the address under which guests reach the box.",
        )
    if urlsplit(url).scheme == "http" and not is_alone(urlsplit(url).hostname or ""):
        return warn(
            "settings",
            "{url} n'est pas chiffré : ni caméra ni page hors ligne sur les téléphones.",
            "{url} is not encrypted: phones give it neither camera nor offline page.",
            "Mettez un certificat devant la box et une adresse https dans server.app_url.",
            "Put a certificate in front of the box and an https address into server.app_url.",
            url=url,
        )
    return well("settings", "Les invités joignent la box sur {url}.",
                "Guests reach the box at {url}.", url=url)  # fmt: skip


def readers(patient: Patient) -> Check:
    """Every scanner of the settings is plugged in and stands for a terminal that exists."""
    known = patient.known_settings().readers
    if not known:
        raise NotExamined
    for scanner in known:
        if scanner.kind != "tcp" and not os.access(scanner.device, os.R_OK):
            return fail(
                "readers",
                "Le lecteur {place} n'est pas branché, ou pas lisible.",
                "The reader {place} is not plugged in, or cannot be read.",
                "Branchez-le ; sinon, donnez à la box le droit de lire (groupes dialout, input).",
                "Plug it in; else let the box read it (groups dialout, input).",
                place=scanner.place,
            )
    for environment in ENVIRONMENTS:
        wanted = {r.terminal for r in known if r.environment == environment}
        with patient.rows(environment) as reader:
            missing = wanted - list_terminal_names(reader)
        if missing:
            return fail(
                "readers",
                "Aucun terminal ne s'appelle {named} ({environment}).",
                "There is no terminal called {named} ({environment}).",
                "Créez-le avec venuebox terminal create, ou corrigez settings.toml.",
                "Create it with venuebox terminal create, or correct settings.toml.",
                named=", ".join(sorted(missing)),
                environment=environment,
            )
    return well("readers", "{count} lecteurs branchés.", "{count} readers plugged in.",
                count=len(known))  # fmt: skip


def _addresses(patient: Patient) -> list[str]:
    """Where the box may answer on this machine: as it remembers, and as its settings say."""
    found = []
    remembered = urlsplit(patient.directory.remembered_address() or "")
    try:
        known = patient.known_settings()
    except NotExamined:
        known = None
    if remembered.port:
        found.append(f"http://127.0.0.1:{remembered.port}")
        if remembered.hostname in own_addresses():  # it may listen there alone
            found.append(f"http://{remembered.netloc}")
    if known is not None and known.server.port:
        found.append(f"http://{_listening_host(known.server.host)}:{known.server.port}")
    return list(dict.fromkeys(found))


def _listening_host(host: str) -> str:
    """As a URL on this machine writes it."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not listened on
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
