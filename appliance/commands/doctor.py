"""`venuebox doctor`: check the box and print findings with remedies."""

import argparse

from appliance.commands.console import Commands, Console, add_command, print_answer
from appliance.core.errors import OperatorError
from appliance.core.settings import Settings

_FRENCH = ("fr", "ar")  # Arabic locales get French, which is common in Morocco


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    meaning = "check the box and say how to fix what is wrong"
    parser = add_command(commands, "doctor", run, meaning, "--data", "--json")
    parser.add_argument("--online", action="store_true", help="also connect to the mail server")
    meaning = "remove other users' access to its files"
    parser.add_argument("--fix", action="store_true", help=meaning)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print findings and remedies; status 1 if a check fails. Only --fix changes anything."""
    # Imported here, so that other commands start without mail and HTTP.
    from appliance.core.i18n import load_languages  # noqa: PLC0415
    from appliance.doctor.check import CheckContext, Sentence, worst  # noqa: PLC0415
    from appliance.doctor.checks import examine  # noqa: PLC0415
    from appliance.doctor.data import fix_permissions  # noqa: PLC0415

    directory = console.directory(arguments)
    directory.check()
    changed = fix_permissions(directory) if arguments.fix else []
    settings: Settings | str
    try:
        settings = console.settings_in_force(directory)
    except OperatorError as trouble:
        settings = str(trouble)
    checks = examine(
        CheckContext(directory, settings, console.clock, console.zones, arguments.online)
    )
    languages, environ = load_languages(), console.environ
    locales = [environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    locale = next(filter(None, locales), "")
    language = languages.get("fr" if locale.startswith(_FRENCH) else "en")

    def told(sentence: Sentence | None) -> object:
        return sentence and {each.code: sentence.text(each) for each in languages.all()}

    found = [
        {"name": check.name, "status": check.status, "finding": told(check.finding),
         "remedy": told(check.remedy)}
        for check in checks
    ]  # fmt: skip
    fixed = language.gettext("fixed")
    lines = [f"{fixed}  {path}" for path in changed]
    for check in checks:
        word = check.status if check.status == "ok" else check.status.upper()
        lines.append(f"{word:4}  {check.name:12}  {check.finding.text(language)}")
        if check.remedy is not None:
            lines.append(f"{'':18}  → {check.remedy.text(language)}")
    answer = {"status": worst(checks), "checks": found, "fixed": [*map(str, changed)]}
    print_answer(arguments, answer, "\n".join(lines))
    return 1 if worst(checks) == "fail" else 0
