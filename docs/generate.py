"""Write docs/reference/ from the code.

With `--check`, write nothing, but print all differences and exit with status 1 if there are any.
"""
# ruff: noqa: D103, INP001, T201 - a build script, not a package; it prints its results

import argparse
import asyncio
import difflib
import inspect
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from aiohttp import web
from interface_pages import describe_api, describe_errors, describe_events, describe_verdicts
from pages import code, fenced, page, plain, sentence, table

from appliance.backup.catalogue import Record, write_record
from appliance.box import Box, open_box
from appliance.clock import BoxClock, SystemClock, newest_zone_database
from appliance.core.saved_settings import settings_example
from appliance.core.settings import Settings, describe_settings
from appliance.core.tokens import Tokens
from appliance.database.migrate import migrate
from appliance.environment import path_prefix
from appliance.http.request import PRINCIPALS, Principal
from web.application import build_application
from web.main import make_parser
from web.monitoring import collect

DOCS = Path(__file__).resolve().parent
TEST = path_prefix("test")


def main() -> int:
    """Write the pages, or compare them with `--check`. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare the pages")
    only_compare = parser.parse_args().check
    pages = make_pages()
    stale = sorted({str(path.relative_to(DOCS)) for path in DOCS.glob("reference/*")} - set(pages))
    differs = bool(stale)
    for name in stale:
        print(f"docs/{name}: this file is no longer generated. Delete it.")
    for name, text in pages.items():
        path = DOCS / name
        present = path.read_text("utf-8") if path.exists() else ""
        if present == text:
            continue
        differs = True
        if only_compare:
            lines = (present.splitlines(), text.splitlines(), f"docs/{name}", "generated")
            print("\n".join(difflib.unified_diff(*lines, lineterm="", n=1)))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"docs/{name}: written")
    if only_compare and differs:
        print(
            "docs: generated pages are out of date. Run `make docs` and commit the changes.",
            file=sys.stderr,
        )
    return int(only_compare and differs)


def make_pages() -> dict[str, str]:
    """Return the text of each page by its path below docs/."""
    addresses, metrics = asyncio.run(ask_a_box())
    return {
        "reference/addresses.md": addresses,
        "reference/api.md": describe_api(),
        "reference/cli.md": describe_command_line(),
        "reference/errors.md": describe_errors(),
        "reference/events.md": describe_events(),
        "reference/metrics.md": metrics,
        "reference/settings.md": describe_settings_page(),
        "reference/verdicts.md": describe_verdicts(),
    }


# The reference of the command line.


def describe_command_line() -> str:
    parser = make_parser()
    [commands] = subcommands(parser)
    blocks = []
    for name, below in commands.items():
        blocks += describe_command(below, f"venuebox {name}", level=2)
    return page(
        "Command line",
        "`venuebox COMMAND --help` prints the information on this page. The exit status is 0 on "
        "success, 2 for wrong usage, 130 after an interrupt with Ctrl-C, and 1 otherwise. Error "
        "messages are printed to standard error. `venuebox --version` prints the version.",
        *blocks,
    )


def subcommands(parser: argparse.ArgumentParser) -> list[Mapping[str, argparse.ArgumentParser]]:
    groups = parser._actions  # noqa: SLF001 - argparse has no public list of a parser's actions
    return [each.choices for each in groups if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001


def describe_command(parser: argparse.ArgumentParser, name: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} {code(name)}"
    yield plain(sentence(parser.description or ""))
    groups = subcommands(parser)
    for group in groups:
        for word, below in group.items():
            yield from describe_command(below, f"{name} {word}", level + 1)
    if groups:
        return
    actions = [each for each in parser._actions if not isinstance(each, argparse._HelpAction)]  # noqa: SLF001
    yield fenced("text", " ".join([name, *usage(parser, actions)]))
    if actions:
        rows = [(code(spelling(each)), plain(each.help or "")) for each in actions]
        yield table(("option", "meaning"), rows)


def usage(parser: argparse.ArgumentParser, actions: list[argparse.Action]) -> Iterator[str]:
    """Yield each option as in a usage line. Mutually exclusive options are joined by bars."""
    exclusive = parser._mutually_exclusive_groups  # noqa: SLF001 - as above
    of_action = {id(each): group for group in exclusive for each in group._group_actions}  # noqa: SLF001
    shown: set[int] = set()
    for action in actions:
        group = of_action.get(id(action))
        if group is None:
            required = action.required or (not action.option_strings and action.nargs != "?")
            several = "..." if isinstance(action, argparse._AppendAction) else ""  # noqa: SLF001
            yield spelling(action) if required else f"[{spelling(action)}]{several}"
        elif id(group) not in shown:
            shown.add(id(group))
            choice = " | ".join(map(spelling, group._group_actions))  # noqa: SLF001
            yield f"({choice})" if group.required else f"[{choice}]"


def spelling(action: argparse.Action) -> str:
    """Return the option with its value, such as `--port P`, or the argument, such as `ID`."""
    value = "|".join(map(str, action.choices)) if action.choices else action.metavar or action.dest
    if not action.option_strings:
        return str(value)
    return action.option_strings[-1] + ("" if action.nargs == 0 else f" {value}")


# Settings.


def describe_settings_page() -> str:
    example, blocks = settings_example(), []
    reader = example[example.index("# [[readers]]") :]
    for section, rows in groupby(describe_settings(), key=lambda row: row[0].split(".")[0]):
        listed = list(rows)
        purpose = inspect.getdoc(type(getattr(Settings(), section))) or ""
        cells = [
            (code(name), code(json.dumps(default)), plain(meaning(example, name)), code(variable))
            for name, variable, default in listed
        ]
        head = ("setting", "default", "meaning", "environment variable")
        blocks += [f"## {section}", purpose, table(head, cells)]
    return page(
        "Settings",
        "Settings are stored in `settings.toml` in the data directory. `venuebox init` creates "
        "this file with all settings commented out. Environment variables override the file. In "
        "an environment variable, separate the items of a list with commas. Settings are read at "
        "startup, so restart the box after a change. If a setting is unknown or its value is not "
        "allowed, the box does not start and prints the reason.",
        *blocks,
        "## readers",
        "Scanners that this computer reads. Each scanner has its own `[[readers]]` table. There "
        "are no environment variables for these settings.",
        fenced("toml", re.sub(r"^# ?", "", reader.strip(), flags=re.MULTILINE)),
    )


def meaning(example: str, name: str) -> str:
    """Return the comment above the setting in the example of settings.toml."""
    section, setting = name.split(".")
    lines = example.partition(f"\n[{section}]\n")[2].splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"#{setting} = "))
    return lines[at - 1].removeprefix("# ")


# Addresses and metrics, from a box with two empty databases.


async def ask_a_box() -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="venuebox-docs-") as scratch:
        directory, clock = Path(scratch), BoxClock(SystemClock(), lambda: True)
        for name in ("live", "test"):
            migrate(directory / f"{name}.db", create=True)
        write_record(directory, Record(at=clock.now()))  # adds the backup's age to the metrics
        box = open_box(
            directory, bytes(32), Settings(), address="https://box.example", clock=clock,
            tokens=Tokens(), zones=newest_zone_database(),
        )  # fmt: skip
        try:
            return describe_addresses(build_application(box)), describe_metrics(box)
        finally:
            await box.close()


def describe_addresses(app: web.Application) -> str:
    declared = {
        (method, re.sub(r"\{(\w+):[^}]*\}", r"{\1}", path)): principal
        for (method, path), principal in app[PRINCIPALS].items()
    }
    found: dict[Principal, list[tuple[str, str, str]]] = defaultdict(list)
    addresses = {
        (route.method, route.resource.canonical): route
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    for (method, path), route in addresses.items():
        if path.startswith(f"{TEST}/") and (method, path.removeprefix(TEST)) in addresses:
            continue
        both = code(TEST) if (method, TEST + path) in addresses else ""
        row = (code(f"{method} {path}"), both, plain(purpose(route.handler)))
        found[declared[method, path]].append(row)
    blocks = []
    for title, intro, kind in _CALLERS:
        blocks += [f"## {title}", intro]
        for principal, rows in sorted(found.items(), key=lambda item: rank(item[0])):
            if principal.kind == kind:
                blocks += [
                    f"### {needs(principal)}" if principal.needs else "",
                    table(("address", "also at", "purpose"), rows),
                ]
    return page(
        "Addresses",
        "All addresses of the box, and who may call them.",
        f'An address with `{TEST}` in the column "also at" exists in both environments, for '
        f"example as `/v1/venue` and `{TEST}/v1/venue`. Addresses that accept GET also accept "
        "HEAD, except in the portal.",
        *blocks,
    )


_CALLERS = (
    ("Anybody", "Pages, files, and links whose token grants access.", "anybody"),
    (
        "Partners",
        """These calls require an API key with the scope in the heading, sent as
`Authorization: Bearer <key>`.""",
        "key",
    ),
    (
        "Terminals",
        """These calls require a paired terminal's token or its browser's cookie. Only
`POST /terminal/v1/pair` requires a one-time code instead.""",
        "terminal",
    ),
    (
        "Staff",
        """These addresses require a person who is signed in to the portal and has the role in the
heading. The roles are owner, manager, host and door. Each role includes the rights of the roles
after it.""",
        "staff",
    ),
    (
        "Browsers",
        "All pages of a browser share this stream. It checks the cookies for each page.",
        "browser",
    ),
)
_ROLES = ("owner", "manager", "host", "door")


def rank(principal: Principal) -> tuple[int, str]:
    needed_role = principal.needs or ""
    return (_ROLES.index(needed_role) if needed_role in _ROLES else 0, needed_role)


def needs(principal: Principal) -> str:
    word = "Role" if principal.kind == "staff" else "Scope"
    return f"{word} `{principal.needs}`"


def purpose(handler: Any) -> str:
    """Return the first paragraph of the docstring of the handler inside the wrappers."""
    while inspect.isfunction(inspect.unwrap(handler)):
        around = inspect.getclosurevars(inspect.unwrap(handler)).nonlocals
        if "route" in around:
            handler = around["route"].handler
        elif "handler" in around:
            handler = around["handler"]
        else:
            break
    told = (inspect.getdoc(handler) or "").split("\n\n")[0]
    return sentence(re.sub(r"^`[A-Z]+\b[^`]*`[.:;]? *", "", told))


def describe_metrics(box: Box) -> str:
    rows = []
    for metric in collect(box, {each.name: {} for each in box.environments}, 0, []):
        labels = ", ".join(code(label) for label in metric.labels)
        rows.append((code(metric.name), metric.kind, labels, plain(sentence(metric.meaning))))
    return page(
        "Metrics",
        "`GET /metrics` returns the metrics in the Prometheus text format. It requires an owner "
        "who is signed in, a request from the box's own machine, or `server.metrics_token` as a "
        "bearer token. Other requests get a 404.",
        table(("metric", "type", "labels", "meaning"), rows),
    )


if __name__ == "__main__":
    sys.exit(main())
