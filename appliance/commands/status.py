"""The read-only commands: `venuebox doctor`, `deliveries`, `mirror check`, `version`."""

import argparse
import platform
import sys
from functools import partial
from importlib import resources

import apsw

from appliance.clock import format_instant, optional_instant
from appliance.commands import console as cli
from appliance.core.errors import OperatorError
from appliance.core.settings import MirrorSettings, Settings
from appliance.environment import own_version
from appliance.webhooks import delivery_log

_FRENCH = ("fr", "ar")  # Arabic locales get French, which is common in Morocco


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    meaning = "check the box, and suggest how to solve each problem"
    parser = cli.add_command(commands, "doctor", doctor, meaning, "--data", "--json")
    meaning = "also check that the public address leads to this box"
    parser.add_argument("--outside", action="store_true", help=meaning)
    meaning = "show the versions of venuebox, Python, SQLite and the tz database"
    parser = cli.add_command(commands, "version", version, meaning)
    document = parser.add_mutually_exclusive_group()
    document.add_argument("--sbom", action="store_true", help="components, as CycloneDX JSON")
    document.add_argument("--licences", action="store_true", help="licences of the components")
    meaning = "webhook deliveries and their attempts"
    options = "--data", "--environment", "--json"
    cli.add_command(commands, "deliveries", show_deliveries, meaning, *options)
    group = cli.add_group(commands, "mirror", "the copy in PostgreSQL")
    meaning = "compare the rows in the mirror with those of the box"
    cli.add_command(group, "check", check_mirror, meaning, "--data", "--json")


def doctor(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print findings and remedies. Return 1 if a check fails. Changes nothing."""
    # Imported here, so that other commands start without loading mail and HTTP code.
    from appliance.checks.check import CheckContext, Sentence, worst  # noqa: PLC0415
    from appliance.checks.examine import examine  # noqa: PLC0415
    from appliance.core.i18n import load_languages  # noqa: PLC0415

    directory = console.box(arguments)
    settings: Settings | str
    try:
        settings = console.settings_in_force(directory)
    except OperatorError as trouble:
        settings = str(trouble)
    context = CheckContext(directory, settings, console.clock, console.zones, arguments.outside)
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
    lines = []
    for check in checks:
        word = check.status if check.status == "ok" else check.status.upper()
        lines.append(f"{word:4}  {check.name:12}  {check.finding.text(language)}")
        if check.since is not None:
            lines[-1] += f" ({format_instant(check.since)})"
        if check.remedy is not None:
            lines.append(f"{'':18}  → {check.remedy.text(language)}")
    answer = {"status": worst(checks), "checks": found}
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
    print(f"venuebox {own_version()}")
    print(f"Python {platform.python_version()}")
    print(f"SQLite {apsw.sqlite_lib_version()}")
    print(f"tz database {console.zones.version} ({console.zones.origin})")
    return 0


def show_deliveries(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each delivery, oldest first."""
    with console.reading(console.directory(arguments), arguments.environment) as reader:
        rows = [_row(*each) for each in delivery_log.list_delivery_log(reader)]
    return cli.print_rows(arguments, rows)


def _row(
    event_seq: int, delivery: delivery_log.ListedDelivery, attempts: list[delivery_log.Attempt]
) -> tuple[dict[str, object], list[str]]:
    shown = ", ".join(str(each.http_status or each.outcome) for each in reversed(attempts))
    described = {
        "id": delivery.id,
        "event": event_seq,
        "type": delivery.event_type,
        "endpoint": delivery.endpoint_id,
        "state": delivery.state,
        "attempts": [_describe_attempt(attempt) for attempt in reversed(attempts)],
        "nextAttemptAt": format_instant(delivery.due_at) if delivery.state == "pending" else None,
    }
    return described, [delivery.id, delivery.event_type, delivery.state, shown]


def _describe_attempt(attempt: delivery_log.Attempt) -> dict[str, object]:
    status = attempt.http_status
    outcome = {"error": attempt.outcome} if status is None else {"status": status}
    return {"at": format_instant(attempt.at), **outcome, "durationMs": attempt.duration_ms}


def check_mirror(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print the comparison. Returns 1 if rows differ."""
    from appliance.mirror.compare import compare  # noqa: PLC0415 - loads asyncio
    from appliance.mirror.server import Trouble  # noqa: PLC0415

    directory = console.box(arguments)
    settings = _settings(arguments, console)
    try:
        found, waiting = compare(partial(console.reading, directory, "live"), settings)
    except Trouble as trouble:
        raise OperatorError(
            f"the mirror cannot be read: {trouble}. Run venuebox doctor, which says what to do."
        ) from None
    is_equal = all(table.is_equal for table in found)
    lines = [
        f"{table.name:12} {table.here:10,} here {table.there:10,} there  "
        f"{'equal' if table.is_equal else 'DIFFERENT'}"
        for table in found
    ]
    if waiting:
        lines.append(f"not compared: {waiting:,} rows on their way")
    if not is_equal:
        lines.append(
            "To make them equal, delete the row of this venue in venuebox.venue, then restart the "
            "box: it copies everything again."
        )
    tables = [cli.describe(table, "name", "here", "there", "is_equal") for table in found]
    answer = {"isEqual": is_equal, "waiting": waiting, "tables": tables}
    cli.print_answer(arguments, answer, "\n".join(lines))
    return 0 if is_equal else 1


def _settings(arguments: argparse.Namespace, console: cli.Console) -> MirrorSettings:
    settings = console.settings(console.box(arguments)).mirror
    if not settings.url:
        raise OperatorError("mirror.url is not set. Set it in settings.toml and restart the box.")
    return settings
