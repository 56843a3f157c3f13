"""`venuebox tls`: import a certificate, or obtain one by ACME."""

import argparse
import time
from pathlib import Path

from appliance.commands import console as cli
from appliance.core.data_directory import wake_box
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write
from appliance.tls import acme, certificates

_POLL_SECONDS = 0.5
_BEGIN_SECONDS = 15
_OBTAIN_SECONDS = 900


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "tls", "the box's TLS certificates")
    meaning = "import a certificate to use for the names in it"
    parser = cli.add_command(group, "import", import_pair, meaning, "--data")
    parser.add_argument("--cert", metavar="FILE", required=True, help="certificate and chain, PEM")
    parser.add_argument("--key", metavar="FILE", required=True, help="its private key, PEM")
    meaning = "try to obtain a certificate by ACME now"
    cli.add_command(group, "obtain", obtain, meaning, "--data")


def _explain(state: acme.State) -> str:
    from appliance.checks.check import describe_acme  # noqa: PLC0415 - as above
    from appliance.core.i18n import load_languages  # noqa: PLC0415 - slow, and rarely needed

    return describe_acme(state).text(load_languages().get("en"))


def import_pair(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Import a certificate and its key. A running box uses it immediately."""
    pem, key = cli.read_argument(arguments.cert), cli.read_argument(arguments.key)
    directory = console.box(arguments)
    names = certificates.import_certificate(directory.root / "tls", pem, key, console.clock.now())
    wake_box(directory.wakeup_pipe)
    print(f"the certificate is used for {', '.join(names.dns)}")
    if pem.count(b"-----BEGIN CERTIFICATE-----") == 1:
        print("It came without a chain. Phones refuse it unless they trust its issuer directly.")
        print("If the issuer provides a chain, such as fullchain.pem, import that file.")
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
    if not plan.name:
        raise OperatorError(
            "ACME is off, because server.app_url is not an https address with a public name."
        )
    if plan.rests:
        raise OperatorError(f"ACME is off for {plan.name}: the imported certificate is used")
    if not plan.may_ask(console.clock.now()):
        raise OperatorError(
            "another attempt now could exceed the authority's rate limits. The box allows 4 "
            "failed attempts an hour. Try again later."
        )
    before = acme.read_state(folder).ended_at
    atomic_write(folder / acme.REQUESTED, b"")
    if not wake_box(directory.wakeup_pipe):
        (folder / acme.REQUESTED).unlink()
        raise OperatorError(
            "the box is not running, so it cannot answer the authority. Start the box first."
        )
    ended = _wait_for_end(folder, before)
    if ended.reason:
        raise OperatorError(_explain(ended))
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
                "the attempt has not ended yet. Run venuebox doctor later to see the result."
                if has_begun else
                "the box has not begun the attempt yet, but will as soon as possible. Restart the "
                "box if its settings have changed. Run venuebox doctor to see whether its clock is "
                "trusted."
            )  # fmt: skip
        time.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
    return state
