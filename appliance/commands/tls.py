"""`venuebox tls`: show, import, renew and remove the box's TLS certificates."""

import argparse
import time
from pathlib import Path
from typing import Any

from appliance.alerts import Alert
from appliance.clock import format_instant
from appliance.commands import console as cli
from appliance.core.data_directory import wake_box
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write
from appliance.core.network import own_addresses
from appliance.door.terminals import list_terminals
from appliance.tls import acme, authority, certificates
from appliance.venue.model import get_venue

_POLL_SECONDS = 0.5
_BEGIN_SECONDS = 15
_OBTAIN_SECONDS = 900


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "tls", "the box's TLS certificates")
    cli.add_command(group, "show", show, "show names, expiry and fingerprints", "--data", "--json")
    meaning = "import a certificate to use for the names in it"
    parser = cli.add_command(group, "import", import_pair, meaning, "--data")
    parser.add_argument("--cert", metavar="FILE", required=True, help="certificate and chain, PEM")
    parser.add_argument("--key", metavar="FILE", required=True, help="its private key, PEM")
    parser = cli.add_command(group, "renew", renew, "issue a new certificate now", "--data")
    meaning = "also create a new authority, which every device must trust"
    parser.add_argument("--authority", action="store_true", help=meaning)
    cli.add_command(group, "forget", forget, "remove the imported certificate", "--data")
    meaning = "try to obtain a certificate by ACME now"
    cli.add_command(group, "obtain", obtain, meaning, "--data")


def show(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print names, expiry and fingerprints. Raises OperatorError if there is no certificate."""
    directory, now = console.box(arguments), console.clock.now()
    folder = directory.root / "tls"
    found = certificates.describe(folder, now)
    if found is None:
        raise OperatorError("there is no certificate yet. Run venuebox serve, which creates it.")
    settings = console.settings(directory)
    plan = acme.read_plan(folder, settings)
    found["acme"] = acme.describe_plan(plan, now) if settings.acme.directory else None
    lines = _describe("signed by the box", found)
    if found["authority"]:
        lines.append(f"authority     {_shown(found['authority'])}")
    if found["imported"] is not None:
        lines += _describe("imported, for its names only", found["imported"])
    if found["obtained"] is not None:
        lines += _describe("obtained by ACME, for its names only", found["obtained"])
    if found["acme"] is not None:
        lines.append(f"ACME          {_describe_plan(plan, found['acme'])}")
        lines += [f"account       {plan.state.account}"] if plan.state.account else []
    return cli.print_answer(arguments, found, "\n".join(lines))


def _describe_plan(plan: acme.Plan, shown: dict[str, Any]) -> str:
    if not plan.name:
        return "off, because server.app_url is not an https address with a public name"
    if plan.rests:
        return f"off for {plan.name}, because the imported certificate is used"
    problem = acme.alert_of(plan.state)
    said = f"{_explain(problem)}; next attempt" if problem else "next attempt"
    return f"{said} {shown['nextAttemptAt']}"


def _explain(problem: Alert) -> str:
    from appliance.core.i18n import load_languages  # noqa: PLC0415 - slow, and rarely needed
    from appliance.doctor.check import describe  # noqa: PLC0415 - as above

    return describe(problem).text(load_languages().get("en"))


def _describe(kind: str, found: dict[str, Any]) -> list[str]:
    return [
        f"certificate   {kind}",
        f"names         {', '.join(found['names'])}",
        f"ends          {found['endsAt']} ({found['daysLeft']} days)",
        f"SHA-256       {_shown(found['fingerprint'])}",
    ]


def _shown(fingerprint: str) -> str:
    """Return the fingerprint in the form in which browsers and `/trust` show it."""
    return bytes.fromhex(fingerprint).hex(":").upper()


def import_pair(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Import a certificate and its key. A running box uses it at once."""
    pem, key = cli.read_argument(arguments.cert), cli.read_argument(arguments.key)
    directory = console.box(arguments)
    names = certificates.import_certificate(directory.root / "tls", pem, key, console.clock.now())
    wake_box(directory.wakeup_pipe)
    print(f"the certificate is used for {', '.join(names.dns)}")
    if pem.count(b"-----BEGIN CERTIFICATE-----") == 1:
        print("It came without a chain. Phones refuse it unless they trust its issuer directly.")
        print("If the issuer provides a chain, such as fullchain.pem, import that file.")
    return 0


def renew(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Issue a new certificate. With --authority, create a new authority first."""
    directory = console.box(arguments)
    server = console.settings(directory).server
    with console.reading(directory, "live") as live, console.reading(directory, "test") as test:
        venue = get_venue(live)
        has_terminals = bool(list_terminals(live) or list_terminals(test))
    wanted = authority.wanted_names(venue.slug, server, own_addresses())
    folder = directory.root / "tls"
    if arguments.authority:
        (folder / certificates.AUTHORITY).unlink(missing_ok=True)
    certificates.Certificates(
        folder, console.clock, lambda: venue.name, lambda: wanted, lambda: has_terminals
    ).renew(force=True)
    wake_box(directory.wakeup_pipe)
    print(f"renewed on {format_instant(console.clock.now())}")
    return 0


def obtain(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Ask the running box to obtain a certificate now, and wait for the result.

    Raises OperatorError if the box cannot make an attempt now, or if the attempt fails.
    """
    directory = console.box(arguments)
    settings, folder = console.settings(directory), directory.root / "tls"
    plan = acme.read_plan(folder, settings)
    if not settings.acme.directory:
        raise OperatorError(
            "ACME is off. Set acme.directory and acme.agree_terms, then restart the box."
        )
    if not plan.name or plan.rests:
        raise OperatorError(f"ACME is {_describe_plan(plan, {})}")
    if not plan.may_ask(console.clock.now()):
        raise OperatorError(
            "another attempt now could exceed the authority's rate limits. The box allows 4 "
            "attempts an hour, and none within 2 days of a success. Try again later."
        )
    before = acme.read_state(folder).ended_at
    atomic_write(folder / acme.REQUESTED, b"")
    if not wake_box(directory.wakeup_pipe):
        (folder / acme.REQUESTED).unlink()
        raise OperatorError(
            "the box is not running, so it cannot answer the authority. Start the box first."
        )
    ended = _wait_for_end(folder, before)
    problem = acme.alert_of(ended)
    if problem is not None:
        raise OperatorError(_explain(problem))
    print(f"obtained for {plan.name}")
    return 0


def _wait_for_end(folder: Path, before: int | None) -> acme.State:
    """Wait until a new attempt has ended, and return the state after it.

    `before` is when the previous attempt ended, in ms since 1970, or None if there was none. Raises
    OperatorError if the new attempt has not begun after 15 s or has not ended after 15 min.
    """
    waited = 0.0
    while (state := acme.read_state(folder)).ended_at == before:
        has_begun = not (folder / acme.REQUESTED).exists()
        if waited > (_OBTAIN_SECONDS if has_begun else _BEGIN_SECONDS):
            raise OperatorError(
                "the attempt has not ended yet. Run venuebox tls show later to see the result."
                if has_begun else
                "the box has not begun the attempt yet, but will as soon as possible. Restart the "
                "box if its settings have changed. Run venuebox doctor to see whether its clock is "
                "trusted."
            )  # fmt: skip
        time.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
    return state


def forget(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Remove the imported certificate and, if ACME is off, the one obtained by ACME.

    Raises OperatorError if there is neither.
    """
    directory = console.box(arguments)
    folder = directory.root / "tls"
    # A certificate obtained by ACME stays in use after ACME is turned off, so remove it too.
    is_off = not console.settings(directory).acme.directory
    was_obtained = is_off and certificates.forget_certificate(folder, certificates.OBTAINED)
    if not (certificates.forget_certificate(folder) or was_obtained):
        raise OperatorError("there is no imported certificate")
    wake_box(directory.wakeup_pipe)
    if is_off:
        print("the box's own certificate is used for every name")
    else:
        print(
            "the certificate obtained by ACME is used or, until there is one, the box's own "
            "certificate"
        )
    return 0
