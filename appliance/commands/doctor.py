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
from appliance.errors import Trouble
from appliance.settings import Settings

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
    from appliance.doctor.check import CheckContext, worst  # noqa: PLC0415
    from appliance.doctor.data import fix_permissions  # noqa: PLC0415
    from appliance.doctor.examination import examine  # noqa: PLC0415
    from appliance.i18n import load_languages  # noqa: PLC0415

    directory = console.directory(arguments)
    directory.check()
    changed = fix_permissions(directory) if arguments.fix else []
    settings = _settings(console, directory)
    checks = examine(
        CheckContext(directory, settings, console.clock, console.zones, arguments.online)
    )
    languages = load_languages()
    if arguments.json:
        found = [
            {
                "name": check.name,
                "status": check.status,
                "finding": {each.code: check.finding.text(each) for each in languages.all()},
                "remedy": check.remedy
                and {each.code: check.remedy.text(each) for each in languages.all()},
            }
            for check in checks
        ]
        print_json({"status": worst(checks), "checks": found, "fixed": [*map(str, changed)]})
    else:
        language = languages.get("fr" if _locale(console).startswith(_FRENCH) else "en")
        fixed = language.gettext("fixed")
        for path in changed:
            print(f"{fixed}  {path}")
        for check in checks:
            word = check.status if check.status == "ok" else check.status.upper()
            print(f"{word:4}  {check.name:12}  {check.finding.text(language)}")
            if check.remedy is not None:
                print(f"{'':18}  → {check.remedy.text(language)}")
    return 1 if worst(checks) == "fail" else 0


def _settings(console: Console, directory: DataDirectory) -> Settings | str:
    try:
        return console.settings_in_force(directory)
    except Trouble as trouble:
        return str(trouble)


def _locale(console: Console) -> str:
    known = (console.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next((text for text in known if text), "")
