"""Write docs/reference/ and docs/contributing/traceability.md from the code.

With `--check`, write nothing, but print all differences and exit with status 1 if there are any.
"""
# ruff: noqa: D103, INP001, T201 - a build script, not a package; it prints its results

import argparse
import ast
import asyncio
import difflib
import inspect
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from aiohttp import web

from appliance.backup.catalogue import Record, write_record
from appliance.box import Box, open_box
from appliance.clock import StoppedClock, newest_zone_database
from appliance.core.errors import ApiError
from appliance.core.scanner_settings import EXAMPLE
from appliance.core.settings import Settings, describe_settings
from appliance.core.tokens import Tokens
from appliance.database.migrate import migrate
from appliance.doctor.check import Counts
from appliance.door.verdict import COLOURS, OVERRIDABLE, FirstCheckIn, Seen, Verdict, phrase
from appliance.environment import path_prefix
from appliance.http.request import PRINCIPALS, Principal
from appliance.outbox import EVENT_TYPES
from web.api.openapi import build_document, describe_callbacks, describe_servers
from web.application import build_application
from web.main import make_parser
from web.monitoring import collect
from web.routes import PARTNER_ROUTE_TABLE

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
TEST = path_prefix("test")
GENERATED = "`make docs` generates this page from the code. Do not edit it."


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
        "contributing/traceability.md": describe_labels(),
    }


# Markdown.


def page(title: str, *blocks: str) -> str:
    """Return a page with a title. Empty blocks are left out."""
    return "\n\n".join(block for block in (f"# {title}", *blocks, GENERATED) if block) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table. Bars in cells are escaped."""
    lines = [list(head), *(list(row) for row in rows)]
    texts = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in lines]
    texts.insert(1, ["---"] * len(texts[0]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in texts)


def plain(text: str) -> str:
    """Escape plain text for Markdown, in which `<name>` would be HTML and `*` emphasis."""
    return re.sub(r"([<*])", r"\\\1", text)


def code(text: object) -> str:
    return f"`{text}`"


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def as_json(value: object) -> str:
    return fenced("json", json.dumps(value, ensure_ascii=False, indent=2))


def sentence(text: str) -> str:
    """Return the text with a capital letter at the start and a full stop at the end."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


# The command line.


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
    blocks = []
    for section, rows in groupby(describe_settings(), key=lambda row: row[0].split(".")[0]):
        listed = list(rows)
        purpose = inspect.getdoc(type(getattr(Settings(), section))) or ""
        cells = [
            (code(name), code(json.dumps(default)), plain(text), code(variable))
            for name, variable, default, text in listed
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
        fenced("toml", re.sub(r"^# ?", "", EXAMPLE.strip().split("\n", 1)[1], flags=re.MULTILINE)),
    )


# The partner interface.


def describe_api() -> str:
    document = build_document(PARTNER_ROUTE_TABLE, describe_servers("", "live"))
    operations = [
        (route, document["paths"][route.path][route.method.lower()])
        for route in PARTNER_ROUTE_TABLE
    ]
    rows = [
        (
            code(f"{route.method} {route.path}"),
            code(route.scope),
            f"[{operation['summary']}](#{fragment(route.method, route.path)})",
        )
        for route, operation in operations
    ]
    return page(
        "Partner interface",
        "Every box also serves this description as an OpenAPI 3.1 document at `/openapi.json`. At "
        "`/docs/reference`, it serves a page on which you can try each call.",
        "Paths are relative to the base URL of the environment. For live, this is the URL of the "
        f"box. For test, it is the URL of the box followed by `{TEST}`. Each call must have the "
        "header `Authorization: Bearer <key>`.",
        table(("call", "scope", "purpose"), rows),
        *(block for route, each in operations
          for block in describe_operation(document, route.method, route.path, each)),
    )  # fmt: skip


def fragment(method: str, path: str) -> str:
    """Return the anchor that code hosts generate for the heading `METHOD /path`."""
    return re.sub(r"[^\w -]", "", f"{method} {path}".lower()).replace(" ", "-")


def describe_operation(document: Any, method: str, path: str, operation: Any) -> Iterator[str]:
    yield f"## {code(f'{method} {path}')}"
    yield sentence(operation["summary"])
    yield operation["description"]
    parameters = [
        (code(each["name"]), each["in"], needed(each.get("required")), each["description"])
        for each in operation.get("parameters", ())
    ]
    if parameters:
        yield table(("parameter", "in", "", "meaning"), parameters)
    if body := operation.get("requestBody"):
        media = body["content"]["application/json"]
        yield "Body:"
        yield table(("member", "", "meaning"), members(document, media["schema"]))
        yield as_json(first(media["examples"]))
    for status, response in operation["responses"].items():
        media = response.get("content", {}).get("application/json", {})
        if status.startswith("2") and "examples" in media:
            yield f"Answer {status}: {response['description']}"
            yield as_json(first(media["examples"]))
    refusals = ", ".join(f"{status} {names}" for status, names in codes_of(document, operation))
    yield f"Refusals: {refusals}. See [errors](errors.md)."


def needed(required: object) -> str:
    return "required" if required else "optional"


def first(examples: Mapping[str, Any]) -> Any:
    return next(iter(examples.values()))["value"]


def resolve(document: Any, part: Any) -> Any:
    while "$ref" in part:
        found = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


def members(document: Any, schema: Any, before: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (path, required or optional, meaning) of each member, also of nested objects."""
    known = resolve(document, schema)
    for name, part in known.get("properties", {}).items():
        below = resolve(document, part)
        told = part.get("description") or below.get("description", "")
        yield code(before + name), needed(name in known.get("required", ())), told
        yield from members(document, below, f"{before}{name}.")


def codes_of(document: Any, operation: Any) -> Iterator[tuple[str, str]]:
    for status, response in operation["responses"].items():
        examples = resolve(document, response).get("content", {}).get("application/json", {})
        if status >= "4":
            yield status, " ".join(code(name) for name in examples["examples"])


# Errors.


def describe_errors() -> str:
    kinds = list(refusals())
    return page(
        "Errors",
        'Every error response has the body `{"error": <French>, "error_en": <English>, "code": '
        "<CODE>}`. With status 400, the body may also have `field`, the JSON path of the invalid "
        "member. Programs should check `code`, because the messages may change. Names in braces "
        "are placeholders for details of the request. The same code has other messages for guests "
        "and staff than for partners. Terminals receive them as JSON, and browsers as a page.",
        error_table(kinds),
        "Additional response headers:",
        header_list(kinds),
    )


def refusals(kind: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    """Yield every subclass that has a code, i.e. every documented error."""
    for below in kind.__subclasses__():
        if hasattr(below, "code"):
            yield below
        yield from refusals(below)


def error_table(kinds: Iterable[type[ApiError]]) -> str:
    ordered = sorted(kinds, key=lambda kind: (kind.status, kind.code, kind.english))
    rows = [
        (str(kind.status), code(kind.code), plain(kind.english), plain(kind.french))
        for kind in ordered
    ]
    return table(("HTTP", "code", "English", "French"), rows)


def header_list(kinds: Iterable[type[ApiError]]) -> str:
    lines = {
        f"- {code(kind.code)} has {code(f'{name}: {value}')}"
        for kind in kinds
        for name, value in kind.headers.items()
    }
    return "\n".join(sorted(lines))


# Events.

EXTRA_TYPE = (
    "This event type is not part of the interface. Only endpoints that subscribe to it in the "
    "portal receive it."
)


def describe_events() -> str:
    callbacks = describe_callbacks()
    blocks = []
    for name, callback in callbacks.items():
        [request] = (each["post"] for each in callback.values())
        blocks += [
            f"## {code(name)}",
            f"{sentence(request['summary'])} {request['description']}",
            "" if name in EVENT_TYPES else EXTRA_TYPE,
            as_json(request["requestBody"]["content"]["application/json"]["example"]),
        ]
    [sample] = (each["post"] for each in callbacks[EVENT_TYPES[0]].values())
    headers = [(code(each["name"]), each["description"]) for each in sample["parameters"]]
    answers = [(code(status), each["description"]) for status, each in sample["responses"].items()]
    return page(
        "Events",
        "An event is sent to a webhook endpoint as a POST request with a JSON body.",
        table(("header", "meaning"), headers),
        table(("receiver's response", "meaning"), answers),
        *blocks,
    )


# Verdicts.

_SEEN = Seen(
    id="", date="2026-11-21", slot="20:30", table_id="", table_name="Terrasse 1", guests=4,
    arrived=2, status="confirmed",
)  # fmt: skip
_FIRST = FirstCheckIn(at=0, clock="20:34", terminal="Front door", by=None)


def describe_verdicts() -> str:
    rows = []
    for result, colour in COLOURS.items():
        verdict = Verdict(result, _SEEN, admitted=2, first_check_in=_FIRST)
        said = phrase(verdict, "en")
        may = "yes" if result in OVERRIDABLE else "no"
        rows.append((code(result), colour, plain(said.staff), plain(said.guest), may))
    head = ("result", "colour", "to the staff", "to the guest", "may be overridden")
    return page(
        "Verdicts",
        "The response to every decided scan has status 200, a `result` and a `colour`. `say` has "
        "one sentence for the staff and one for the guest, in French, English or Arabic. The "
        "sentences below are examples, so programs should check `result`. At a terminal with the "
        "role `override`, staff may override some verdicts. They must give a reason, which is "
        "stored in the door log.",
        table(head, rows),
    )


# Addresses and metrics, from a box with two empty databases.


async def ask_a_box() -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="venuebox-docs-") as scratch:
        directory, clock = Path(scratch), StoppedClock("2026-11-21T19:00:00Z")
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
    counts = {each.name: Counts({}, {}, {}, 0) for each in box.environments}
    rows = []
    for family in collect(box, counts, 0, 0.0):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(code(label) for label in getattr(family, "_labelnames", ()))
        rows.append((code(name), family.type, labels, plain(sentence(family.documentation))))
    return page(
        "Metrics",
        "`GET /metrics` returns the metrics in the Prometheus text format. It requires an owner "
        "who is signed in, a request from the box's own machine, or `server.metrics_token` as a "
        "bearer token. Other requests get a 404.",
        table(("metric", "type", "labels", "meaning"), rows),
    )


# The labels of the tests.

_KINDS = (
    ("The partner interface", re.compile(r"interface (\d+): ")),
    ("Security requirements", re.compile(r"S\d+$")),
    ("Chapters of ASVS 5", re.compile(r"V\d+$")),
    ("Invariants", re.compile(r"I\d+$")),
    ("Guarantees", re.compile(r"G\d+$")),
    ("Decisions", re.compile(r"decision: ")),
    ("Others", re.compile("")),
)


def describe_labels() -> str:
    shown: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for label, test in labels_in(path):
            shown[label].append(test)
    grouped: dict[str, list[str]] = {title: [] for title, _ in _KINDS}
    for label in sorted(shown, key=natural):
        title = next(title for title, form in _KINDS if form.match(label))
        grouped[title].append(label)
    blocks = []
    for title, labels in grouped.items():
        if labels:
            tests = ["\n".join([f"- **{plain(label)}**", *(f"  - `{each}`" for each in
                     sorted(set(shown[label])))]) for label in labels]  # fmt: skip
            blocks += [f"## {title}", "\n".join(tests)]
    return page(
        "Traceability",
        '`@pytest.mark.proves("label")` names the requirement that a test verifies. Labels `S…` '
        "and `V…` are rows in [Security](../security.md), and labels `I…` and `G…` are rows in "
        "[Promises](../promises.md). `interface N` is a section of the "
        "[interface](../partners/interface.md), and `decision` is a question in the "
        "[decisions](../decisions/README.md).",
        *blocks,
    )


def labels_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (label, path::test) for each marker of a test, its class and its module."""
    tree = ast.parse(path.read_text("utf-8"))
    name = path.relative_to(ROOT).as_posix()
    marks = [
        node.value for node in tree.body if isinstance(node, ast.Assign)
        and any(isinstance(to, ast.Name) and to.id == "pytestmark" for to in node.targets)
    ]  # fmt: skip
    yield from labels_below(tree, marks, name)


def labels_below(
    parent: ast.Module | ast.ClassDef, marks: list[ast.expr], name: str
) -> Iterator[tuple[str, str]]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef):
            yield from labels_below(node, [*marks, *node.decorator_list], f"{name}::{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in [*marks, *node.decorator_list] if node.name.startswith("test_") else []:
                yield from ((label, f"{name}::{node.name}") for label in proven(mark))


def proven(mark: ast.expr) -> Iterator[str]:
    """Yield the labels of every `proves(…)` in `mark`, also inside a `pytest.param`."""
    for node in ast.walk(mark):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_call and node.func.attr == "proves":
            yield from map(ast.literal_eval, node.args)


def natural(label: str) -> list[tuple[int, int | str]]:
    """Return a sort key that compares numbers by value, so that S2 comes before S10."""
    parts = re.split(r"(\d+)", label)
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]


if __name__ == "__main__":
    sys.exit(main())
