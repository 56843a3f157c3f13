"""`venuebox doctor`: what is wrong with this box, and what to do about it."""

import argparse

from appliance.commands.console import (
    Commands,
    Console,
    add_command,
    add_data,
    add_json,
    print_json,
)
from appliance.data_directory import DataDirectory
from appliance.doctor.check import Check, Said, worst
from appliance.errors import Trouble
from appliance.settings import Settings

_WORDS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
_FRENCH = ("fr", "ar")  # Morocco's machines: French is read where Arabic is


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "doctor", run, "check the box and say how to fix what is wrong")
    add_data(parser)
    add_json(parser)
    parser.add_argument("--online", action="store_true", help="also connect to the mail server")
    parser.add_argument(
        "--fix", action="store_true", help="remove other users' access to its files"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """One finding each, with its remedy; status 1 when one fails. Changes nothing but --fix."""
    # Mail and http come along: the other commands start without them.
    from appliance.doctor.examination import examine  # noqa: PLC0415
    from appliance.doctor.files import fix_permissions  # noqa: PLC0415
    from appliance.doctor.patient import Patient  # noqa: PLC0415

    directory = console.directory(arguments)
    directory.check()
    changed = fix_permissions(directory) if arguments.fix else []
    patient = Patient(
        directory=directory,
        settings=_settings(console, directory),
        clock=console.clock,
        zones=console.zones,
        online=arguments.online,
    )
    checks = examine(patient)
    if arguments.json:
        print_json(
            {"status": worst(checks), "checks": [_as_json(check) for check in checks],
             "fixed": [str(path) for path in changed]}
        )  # fmt: skip
    else:
        french = _language(console).startswith(_FRENCH)
        for path in changed:
            print(f"{'réparé' if french else 'fixed'}  {path}")
        for check in checks:
            _print(check, french=french)
    return 1 if worst(checks) == "fail" else 0


def _settings(console: Console, directory: DataDirectory) -> Settings | str:
    try:
        return console.settings_in_force(directory)
    except Trouble as trouble:
        return str(trouble)


def _language(console: Console) -> str:
    known = (console.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next((text for text in known if text), "")


def _as_json(check: Check) -> dict[str, object]:
    return {
        "name": check.name,
        "status": check.status,
        "finding": check.finding.texts(),
        "remedy": check.remedy and check.remedy.texts(),
    }


def _print(check: Check, *, french: bool) -> None:
    def say(said: Said) -> str:
        return said.fr if french else said.en

    print(f"{_WORDS[check.status]}  {check.name:12}  {say(check.finding)}")
    if check.remedy is not None:
        print(f"{'':18}  → {say(check.remedy)}")
