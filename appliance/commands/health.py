"""`venuebox doctor` and `version`: check the box, show versions."""

import argparse
import platform
import sys
from importlib import resources

import apsw

from appliance.clock import format_instant, optional_instant
from appliance.commands import console as cli
from appliance.core.errors import OperatorError
from appliance.core.settings import Settings
from appliance.environment import own_version

_FRENCH = ("fr", "ar")  # Arabic locales get French, which is common in Morocco


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    meaning = "check the box, and suggest how to solve each problem"
    parser = cli.add_command(commands, "doctor", doctor, meaning, "--data", "--json")
    parser.add_argument("--online", action="store_true", help="also connect to the mail server")
    meaning = "also check that the public address leads to this box"
    parser.add_argument("--outside", action="store_true", help=meaning)
    meaning = "remove other users' access to the box's files"
    parser.add_argument("--fix", action="store_true", help=meaning)
    meaning = "show the versions of venuebox, Python, SQLite and the tz database"
    parser = cli.add_command(commands, "version", version, meaning, "--data")
    document = parser.add_mutually_exclusive_group()
    document.add_argument("--sbom", action="store_true", help="components, as CycloneDX JSON")
    document.add_argument("--licences", action="store_true", help="licences of the components")


def doctor(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print findings and remedies. Return 1 if a check fails. Only --fix changes anything."""
    # Imported here, so that other commands start without loading mail and HTTP code.
    from appliance.core.i18n import load_languages  # noqa: PLC0415
    from appliance.doctor.check import CheckContext, Sentence, worst  # noqa: PLC0415
    from appliance.doctor.checks import examine  # noqa: PLC0415
    from appliance.doctor.data import fix_permissions  # noqa: PLC0415

    directory = console.box(arguments)
    changed = fix_permissions(directory) if arguments.fix else []
    settings: Settings | str
    try:
        settings = console.settings_in_force(directory)
    except OperatorError as trouble:
        settings = str(trouble)
    context = CheckContext(
        directory, settings, console.clock, console.zones, arguments.online, arguments.outside
    )
    checks = examine(context)
    languages = load_languages()
    locales = [console.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    locale = next(filter(None, locales), "")
    language = languages.get("fr" if locale.startswith(_FRENCH) else "en")

    def translate(sentence: Sentence | None) -> object:
        return sentence and {each.code: sentence.text(each) for each in languages.all()}

    found = [
        {"name": check.name, "status": check.status, "finding": translate(check.finding),
         "remedy": translate(check.remedy), "since": optional_instant(check.since)}
        for check in checks
    ]  # fmt: skip
    fixed = language.gettext("fixed")
    lines = [f"{fixed}  {path}" for path in changed]
    for check in checks:
        word = check.status if check.status == "ok" else check.status.upper()
        lines.append(f"{word:4}  {check.name:12}  {check.finding.text(language)}")
        if check.since is not None:
            lines[-1] += f" ({format_instant(check.since)})"
        if check.remedy is not None:
            lines.append(f"{'':18}  → {check.remedy.text(language)}")
    answer = {"status": worst(checks), "checks": found, "fixed": [*map(str, changed)]}
    cli.print_answer(arguments, answer, "\n".join(lines))
    return 1 if worst(checks) == "fail" else 0


def version(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print the versions, or a document that packaging/inventory.py added to the binary.

    Raises OperatorError if a document is requested and this program is not the binary.
    """
    if arguments.sbom or arguments.licences:
        name = "sbom.json" if arguments.sbom else "licences.txt"
        try:
            text = resources.files("appliance").joinpath("inventory", name).read_text("utf-8")
        except FileNotFoundError:
            raise OperatorError(
                "only the binary contains this list. Build the binary with make binary."
            ) from None
        sys.stdout.write(text)
        return 0
    console.directory(arguments)  # so that `zones` also searches tz/ in the data directory
    print(f"venuebox {own_version()}")
    print(f"Python {platform.python_version()}")
    print(f"SQLite {apsw.sqlite_lib_version()}")
    print(f"tz database {console.zones.version} ({console.zones.origin})")
    return 0
