"""The OpenAPI document: paths from the routes, words from the operations, neither alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from appliance.errors import Refusal
from web.api.openapi import samples
from web.api.openapi.guide import TAGS, write_guide
from web.api.openapi.operations import describe_operations
from web.api.openapi.operations.operation import Operation
from web.api.openapi.responses import (
    refusal_responses,
    shared_headers,
    shared_refusals,
    shared_responses,
)
from web.api.openapi.schemas.errors import error_schemas
from web.api.openapi.schemas.parts import Schema
from web.api.openapi.schemas.reservations import reservation_schemas
from web.api.openapi.schemas.venue import venue_schemas
from web.api.openapi.schemas.webhooks import webhook_schemas


class PartnerRoute(Protocol):
    """What a row of the routes tells about an operation (interface, section 4)."""

    @property
    def method(self) -> str: ...  # noqa: D102 - the row's own word
    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def scope(self) -> str: ...  # noqa: D102
    @property
    def operation_id(self) -> str: ...  # noqa: D102


def build_document(
    routes: Sequence[PartnerRoute], servers: list[Schema], wish: samples.Wish | None = None
) -> Schema:
    """The whole description of `routes`, served at `servers`; its examples ask for `wish`.

    ValueError when a route has no description or a description no route.
    """
    operations = describe_operations(wish or samples.Wish())
    _refuse_drift({route.operation_id for route in routes}, operations)
    refusals = _all_refusals(operations.values())
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Partner Reservation Interface for Venues",
            "version": "1.0",
            "description": write_guide(refusals),
        },
        "servers": servers,
        "security": [{"apiKey": []}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": _paths(routes, operations),
        "components": {
            "securitySchemes": {"apiKey": _SECURITY_SCHEME},
            "schemas": {
                **venue_schemas(),
                **reservation_schemas(),
                **webhook_schemas(),
                **error_schemas(refusals),
            },
            "responses": shared_responses(),
            "headers": shared_headers(),
        },
    }


def describe_servers(base: str, environment: str) -> list[Schema]:
    """Both base addresses, that of `environment` first; `base` is where live is called."""
    live: Schema = {"url": base, "description": "Live: keys that start with svc_live_"}
    test: Schema = {
        "url": f"{base}/test",
        "description": "Test: keys that start with svc_test_",
    }
    return [test, live] if environment == "test" else [live, test]


_SECURITY_SCHEME: Schema = {
    "type": "http",
    "scheme": "bearer",
    "description": "The key that the venue gave you, for this environment: `svc_live_` or "
    "`svc_test_` and 48 hexadecimal digits.",
}


def _refuse_drift(routed: set[str], described: Mapping[str, Operation]) -> None:
    silent, lost = sorted(routed - set(described)), sorted(set(described) - routed)
    if silent or lost:
        raise ValueError(f"routes without a description: {silent}; the reverse: {lost}")


def _paths(routes: Iterable[PartnerRoute], operations: Mapping[str, Operation]) -> Schema:
    paths: Schema = {}
    for route in routes:
        item = paths.setdefault(route.path, {})
        item[route.method.lower()] = _operation(route, operations[route.operation_id])
    return paths


def _operation(route: PartnerRoute, operation: Operation) -> Schema:
    """One Operation Object; the scope is its security requirement's role."""
    answers = {str(status): answer for status, answer in operation.answers.items()}
    refusals = refusal_responses(
        operation.refusals, scope=route.scope, has_body=operation.body is not None
    )
    described: Schema = {
        "tags": [operation.tag],
        "operationId": route.operation_id,
        "summary": operation.summary,
        "description": f"{operation.description.strip()}\n\nScope: `{route.scope}`.",
        "security": [{"apiKey": [route.scope]}],
    }
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.body is not None:
        described["requestBody"] = operation.body
    if operation.callbacks:
        described["callbacks"] = operation.callbacks
    return {**described, "responses": {**answers, **refusals}}


def _all_refusals(operations: Iterable[Operation]) -> list[Refusal]:
    """Every code of the interface once, in the order of their status."""
    own = [refusal for operation in operations for refusal in operation.refusals]
    by_code: dict[str, Refusal] = {}
    for refusal in [*own, *shared_refusals()]:
        by_code.setdefault(refusal.code, refusal)
    return sorted(by_code.values(), key=lambda refusal: refusal.status)
