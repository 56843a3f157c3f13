"""Build the OpenAPI 3.1 document from the routes, `web.api.schemas`, errors and openapi.md."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import msgspec

from appliance.api_keys import SCOPES
from appliance.core import errors
from appliance.core.errors import ApiError
from appliance.environment import own_version
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES, VENUE_UPDATED
from appliance.reservations.model import SOURCES, STATUSES
from appliance.webhooks.deliveries import STATES
from web.api import schemas
from web.routes import Route

Schema = dict[str, Any]
_TEXTS = Path(__file__).with_suffix(".md")
_PLACEHOLDERS = re.compile(r"\{\w+\}\.?")
_JSON = "application/json"
_SHARED_RESPONSES: Mapping[str, tuple[type[ApiError], ...]] = {
    "Unauthorized": (errors.Unauthorized, errors.KeyRevoked),
    "BodyTooLarge": (errors.BodyTooLarge,),
    "Misdirected": (errors.Misdirected,),
    "RateLimited": (errors.RateLimited,),
    "InternalError": (errors.InternalError,),
    "Unavailable": (errors.Unavailable,),
}
_ENUMS: Mapping[str, Sequence[str]] = {
    "ReservationStatus": STATUSES,
    "ReservationSource": SOURCES,
    "EventType": EVENT_TYPES,
    "SubscribedEventType": (*EVENT_TYPES, *EXTRA_TYPES),
    "DeliveredEventType": (*EVENT_TYPES, *EXTRA_TYPES),
    "DeliveryState": STATES,
}
_OF_EVERY_ANSWER = ("RateLimit", "RateLimit-Policy", "X-Request-ID")
_OPEN = frozenset({"ErrorCode", "DeliveredEventType"})
_EVENT_EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "reservation.cancelled": {"status": "cancelled"},
    "reservation.declined": {"status": "declined"},
    "reservation.checked_in": {"checkedInAt": "2026-11-21T19:41:07.090Z"},
}


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call in openapi.md.

    `answers` contains the name of the response's struct by status, or "" if it has no
    body. `refusals` are the errors that this call can return in addition to those common to all
    calls, in the order of the checks: the name in `appliance.core.errors` and the details of each.
    """

    tag: str
    answers: Mapping[str, str]
    refusals: Mapping[str, Mapping[str, Any]] = {}
    body: str = ""
    body_required: bool = True
    headers: Sequence[str] = ()  # additional headers in a 200 response

    def make_errors(self) -> list[ApiError]:
        """Return an example of each error in `refusals`."""
        return [_make_error(name, **details) for name, details in self.refusals.items()]


def _make_error(name: str, rule: str | None = None, **details: Any) -> ApiError:
    known = details if rule is None else {**details, "rule": errors.Rule(rule)}
    error: ApiError = getattr(errors, name)(**known)
    return error


@dataclass(frozen=True, slots=True)
class Section:
    """A section in openapi.md. `members` maps member names to descriptions.

    `json` contains an object's example, a call's parameters, or headers. `schema` is set only for
    request objects, because `web.api.schemas` defines the response schemas. `call` is set only for
    calls.
    """

    paragraphs: tuple[str, ...]
    members: Mapping[str, str]
    json: Any
    schema: Schema | None
    call: Call | None


@dataclass(frozen=True, slots=True)
class ExampleBooking:
    """The values in the booking example. A running box replaces them with its own."""

    table_id: str = "0198f0a2-5c1e-7b3d-9a40-2f6c1d8e7b11"
    date: str = "2026-11-21"
    slot: str = "19:30"
    guests: int = 4
    reference: str = "POS-20481"


def build_document(
    routes: Sequence[Route], servers: list[Schema], booking: ExampleBooking | None = None
) -> Schema:
    """Return the OpenAPI document for `routes` at `servers`. Its examples use `booking`.

    Raises KeyError if openapi.md does not describe a route or a member.
    """
    refusals, sections = _all_refusals(), _sections()
    paths: Schema = {}
    for route in routes:
        item = paths.setdefault(route.path, {})
        item[route.method.lower()] = _operation(route, booking or ExampleBooking())
    key = {"type": "http", "scheme": "bearer", "description": sections["apiKey"].paragraphs[0]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Partner Reservation Interface for Venues",
            "version": _version(),
            "description": _guide(refusals),
        },
        "servers": servers,
        "security": [{"apiKey": []}],
        "tags": [
            {"name": name, "description": text} for name, text in sections["Tags"].members.items()
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {"apiKey": key},
            "schemas": _schemas(refusals),
            "responses": _shared_responses(),
            "headers": _described("Headers"),
        },
    }


def _version() -> str:
    """Return the interface's version with the program's version as build, such as `1.0+1.0.0`."""
    build = own_version()
    return f"1.0+{build}" if build[:1].isdecimal() else "1.0"


def describe_servers(base: str, environment: str) -> list[Schema]:
    """Return both servers, with `environment` first. `base` is the live base URL."""
    live: Schema = {"url": base, "description": "Live: keys that start with svc_live_"}
    test: Schema = {"url": f"{base}/test", "description": "Test: keys that start with svc_test_"}
    return [test, live] if environment == "test" else [live, test]


def example(name: str, booking: ExampleBooking | None = None) -> Any:
    """Return an object's example. The one for CreateReservation uses `booking`, if given."""
    value = deepcopy(_sections()[name].json)
    if not booking:
        return value
    place = {"date": booking.date, "slot": booking.slot, "guests": booking.guests}
    if name == "CreateHold":
        value |= {"tableIds": [booking.table_id], **place}
    if name == "ChangeReservation":
        value |= {"guests": booking.guests}
    if name == "CreateReservation":
        value |= {
            "tableId": booking.table_id,
            **place,
            "externalRef": booking.reference,
            "idempotencyKey": f"{booking.reference}-1",
        }
    return value


def sample_event(event_type: str) -> Schema:
    """Return a sample delivery body for an event type."""
    if event_type == VENUE_UPDATED:
        return cast("Schema", example("VenueEvent"))
    body = example("Event")
    body["data"]["reservation"].update(_EVENT_EXAMPLES.get(event_type, {}))
    return {**body, "type": event_type}


def describe_callbacks() -> dict[str, Schema]:
    """Return a callback for each event type. Raises KeyError if a type has no description.

    Callbacks are used instead of OpenAPI's `webhooks` section, because openapi-generator turns that
    section into invalid Python and TypeScript.
    """
    return {
        event_type: {"{$request.body#/url}": {"post": _delivery(event_type)}}
        for event_type in (*EVENT_TYPES, *EXTRA_TYPES)
    }


def _source() -> tuple[str, str]:
    """Return the two parts of openapi.md: the partner guide, and the sections."""
    guide, _, sections = _TEXTS.read_text("utf-8").partition("\n# Words of the document\n")
    return guide, sections


@cache
def _sections() -> Mapping[str, Section]:
    """Return the sections in openapi.md by name."""
    sections = {}
    for part in re.split(r"^## ", _source()[1], flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        blocks = re.findall(r"^```json ?(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        prose = text.partition("```json")[0]
        paragraphs, *_ = re.split(r"^- `", prose, maxsplit=1, flags=re.MULTILINE)
        members = re.findall(r"^- `([^`]+)`: ((?:.+\n)(?:  .+\n)*)", prose, re.MULTILINE)
        parsed = {kind: json.loads(code) for kind, code in blocks}
        sections[name] = Section(
            tuple(_one_line(each) for each in paragraphs.strip().split("\n\n")),
            {member: _one_line(meaning) for member, meaning in members},
            parsed.get(""),
            parsed.get("schema"),
            msgspec.convert(parsed["call"], Call) if "call" in parsed else None,
        )
    return sections


def _calls() -> dict[str, Call]:
    """Return the calls in openapi.md by operation id."""
    return {name: each.call for name, each in _sections().items() if each.call}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _guide(refusals: Iterable[ApiError]) -> str:
    """Return the partner guide, with the scopes and a table of all errors."""
    meanings = _sections()["Scopes"].members
    rows = (
        f"| {refusal.status} | `{refusal.code}` | {_PLACEHOLDERS.sub('…', refusal.text)} |"
        for refusal in refusals
    )
    codes = "\n".join(["| HTTP | Code | Meaning |", "|---|---|---|", *rows])
    scopes = "\n".join(f"- `{scope}`: {meanings[scope]}" for scope in SCOPES)
    return _source()[0].replace("{scopes}", scopes).replace("{codes}", codes)


# Objects.


def _ref(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


def _schemas(refusals: Iterable[ApiError]) -> Schema:
    """Return the component schemas by name. `refusals` are all of the API's errors."""
    names = {name: None for call in _calls().values() for name in call.answers.values() if name}
    answers = [getattr(schemas, name) for name in names]
    _, components = msgspec.json.schema_components(
        [*answers, schemas.Error, schemas.Event, schemas.VenueEvent],
        ref_template="#/components/schemas/{name}",
    )
    sections = _sections()
    components |= {name: deepcopy(each.schema) for name, each in sections.items() if each.schema}
    for name, schema in components.items():
        _describe(sections[name], schema)
    lists = {**_ENUMS, "ErrorCode": list(dict.fromkeys(refusal.code for refusal in refusals))}
    for name, values in lists.items():
        # Later versions may add values to the lists in _OPEN. With `examples` instead of `enum`,
        # clients accept values that are not listed.
        kind = "examples" if name in _OPEN else "enum"
        text = sections[name].paragraphs[0]
        components[name] = {"type": "string", kind: list(values), "description": text}
    return dict(sorted(components.items()))


def _describe(section: Section, schema: Schema) -> None:
    """Add descriptions to a schema from msgspec, and simplify it for client generators."""
    schema.pop("title", None)
    schema["description"] = section.paragraphs[0]
    for name, part in schema["properties"].items():
        if "anyOf" in part:  # `anyOf` stands for "X or null"
            known = next(each for each in part.pop("anyOf") if each != {"type": "null"})
            part.update(known, type=[known["type"], "null"])
            if "enum" in part:
                part["enum"] = [*part["enum"], None]
        if "$ref" in part:
            part.pop("type", None)
        elif "$ref" in part.get("items", {}):
            part["items"].pop("type", None)
        if "$ref" not in part or name in section.members:
            part["description"] = section.members[name]


# Calls.


def _operation(route: Route, booking: ExampleBooking) -> Schema:
    """Return the OpenAPI operation of a route. Its description names the required scope."""
    call, section = _calls()[route.operation_id], _sections()[route.operation_id]
    summary, *description = section.paragraphs
    operation: Schema = {
        "tags": [call.tag],
        "operationId": route.operation_id,
        "summary": summary,
        "description": "\n\n".join(
            [*description, f"Scope: `{route.scope}`." if route.scope else "Any key may call it."]
        ),
        "security": [{"apiKey": [route.scope] if route.scope else []}],
    }
    parameters = _described(route.operation_id)
    if route.operation_id == "getAvailability":
        parameters["date"]["example"], parameters["slot"]["example"] = booking.date, booking.slot
    if route.operation_id == "getAvailabilityRange":
        parameters["from"]["example"] = parameters["to"]["example"] = booking.date
    if parameters:
        operation["parameters"] = _named(parameters)
    if call.body:
        content = _content(call.body, booking)
        operation["requestBody"] = {"required": call.body_required, "content": content}
    if route.operation_id == "createWebhook":
        operation["callbacks"] = describe_callbacks()
    answers: Schema = {
        status: {
            "description": section.members[status],
            **({"content": _content(name, booking, is_new=status == "201")} if name else {}),
            "headers": _header_refs(
                [
                    *(call.headers if status == "200" else ()),
                    *(["ETag"] if "304" in call.answers else ()),
                    *_OF_EVERY_ANSWER,
                ]
            ),
        }
        for status, name in call.answers.items()
    }
    return {**operation, "responses": {**answers, **_refusal_responses(call, route.scope)}}


def _content(name: str, booking: ExampleBooking, *, is_new: bool = False) -> Schema:
    value = example(name, booking)
    if not is_new and name == "NewWebhookEndpoint":
        value.pop("secret", None)  # a secret is shown only once
    examples = {"example": {"value": value}}
    return {_JSON: {"schema": _ref("schemas", name), "examples": examples}}


def _described(name: str) -> dict[str, Schema]:
    """Return the parameters or headers from a section's JSON, with their descriptions."""
    section = _sections()[name]
    return {
        member: {"description": section.members[member], **more}
        for member, more in deepcopy(section.json or {}).items()
    }


def _named(parameters: Mapping[str, Schema]) -> list[Schema]:
    return [{"name": name, "required": False, **more} for name, more in parameters.items()]


def _delivery(event_type: str) -> Schema:
    summary, description = _sections()[event_type].paragraphs
    kind = "VenueEvent" if event_type == VENUE_UPDATED else "Event"
    headers, members = _described("DeliveryHeaders"), _sections()["DeliveryHeaders"].members
    headers["X-Service-Event"]["schema"]["enum"] = [event_type]
    media = {"schema": _ref("schemas", kind), "example": sample_event(event_type)}
    return {
        "operationId": f"on.{event_type}",
        "summary": summary,
        "description": description,
        "parameters": _named(headers),
        "requestBody": {"required": True, "content": {_JSON: media}},
        "responses": {
            name: {"description": text} for name, text in members.items() if name not in headers
        },
        "security": [],
    }


# Errors.


def _all_refusals() -> list[ApiError]:
    """Return one error for each error code of the API, sorted by HTTP status."""
    specific = [refusal for call in _calls().values() for refusal in call.make_errors()]
    # No operation documents a 405, because the document contains only allowed methods. Its code is
    # listed anyway, because a partner may try another method.
    common = (errors.InvalidJson(), errors.HttpsRequired(), errors.ScopeMissing(scope=""),
              errors.MethodNotAllowed())  # fmt: skip
    shared = [kind() for kinds in _SHARED_RESPONSES.values() for kind in kinds]
    by_code: dict[str, ApiError] = {}
    for refusal in [*specific, *common, *shared]:
        by_code.setdefault(refusal.code, refusal)
    return sorted(by_code.values(), key=attrgetter("status"))


def _refusal_responses(call: Call, scope: str) -> dict[str, Schema]:
    """Return all of a call's error responses by status: its own and the shared ones."""
    refusals = [errors.HttpsRequired(), *call.make_errors()]
    if scope:
        refusals.insert(1, errors.ScopeMissing(scope=scope))
    shared = ["Unauthorized", "Misdirected", "RateLimited", "InternalError", "Unavailable"]
    if call.body:
        refusals.insert(0, errors.InvalidJson())
        shared.append("BodyTooLarge")
    by_status = groupby(sorted(refusals, key=attrgetter("status")), key=attrgetter("status"))
    responses = {
        str(status): _error_response(str(status), list(group)) for status, group in by_status
    }
    for name in shared:
        responses[str(_SHARED_RESPONSES[name][0].status)] = _ref("responses", name)
    return dict(sorted(responses.items()))


def _shared_responses() -> dict[str, Schema]:
    """Return the component responses by name."""
    return {
        name: _error_response(name, [kind() for kind in kinds])
        for name, kinds in _SHARED_RESPONSES.items()
    }


def _error_response(name: str, refusals: Sequence[ApiError]) -> Schema:
    """Return a response with an example of each error and the description `name` in openapi.md."""
    description = _sections()["Responses"].members[name]
    examples = {each.code: {"summary": each.code, "value": each.body()} for each in refusals}
    media = {"schema": _ref("schemas", "Error"), "examples": examples}
    common = set.intersection(*(set(refusal.headers) for refusal in refusals))
    headers = _header_refs(sorted({*common, *_OF_EVERY_ANSWER}))
    return {"description": description, "headers": headers, "content": {_JSON: media}}


def _header_refs(names: Iterable[str]) -> Schema:
    return {name: _ref("headers", name) for name in names}
