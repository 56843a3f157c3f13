"""The generated pages on the interface: API, errors, events and verdicts."""
# ruff: noqa: D103, INP001 - for a build script, not a package

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pages import as_json, code, page, plain, sentence, table

from appliance.core.errors import ApiError
from appliance.core.i18n import load_languages
from appliance.door.verdict import COLOURS, OVERRIDABLE, FirstCheckIn, Seen, Verdict, phrase
from appliance.environment import path_prefix
from appliance.outbox import EVENT_TYPES
from web.api.openapi import build_document, describe_callbacks, describe_servers
from web.routes import PARTNER_ROUTE_TABLE

TEST = path_prefix("test")


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
        "member; `VENUE_INACTIVE` has it if only that evening is closed. Programs should check "
        "`code`, because the messages may change. Names in braces are placeholders for details of "
        "the request. The same code has other messages for guests "
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
    ordered = sorted(kinds, key=lambda kind: (kind.status, kind.code, kind.text))
    french = load_languages().get("fr").plain
    rows = dict.fromkeys(
        (str(kind.status), code(kind.code), plain(kind.text), plain(french(kind.text)))
        for kind in ordered
    )
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
