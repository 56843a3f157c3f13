"""An operation as described by hand; its path, method and scope come from the routes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from appliance.errors import Refusal
from web.api.openapi.schemas.parts import Schema


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation (interface, section 4). `refusals` are those that not every operation has."""

    tag: str
    summary: str
    description: str
    answers: Mapping[int, Schema]
    parameters: tuple[Schema, ...] = ()
    body: Schema | None = None
    refusals: tuple[Refusal, ...] = ()
    callbacks: Schema | None = None


def json_answer(
    description: str,
    schema: str,
    examples: Mapping[str, Any] | None = None,
    *,
    headers: tuple[str, ...] = (),
    links: Schema | None = None,
) -> Schema:
    """A JSON answer that is not a refusal; `schema` and `headers` name components."""
    media: Schema = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    if examples:
        media["examples"] = {name: {"value": value} for name, value in examples.items()}
    answer: Schema = {"description": description, "content": {"application/json": media}}
    if headers:
        answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    if links:
        answer["links"] = links
    return answer


def json_body(schema: str, examples: Mapping[str, Any], *, required: bool = True) -> Schema:
    """A JSON request body; `schema` names a component."""
    media = {
        "schema": {"$ref": f"#/components/schemas/{schema}"},
        "examples": {name: {"value": value} for name, value in examples.items()},
    }
    return {"required": required, "content": {"application/json": media}}


def query_parameter(
    name: str, description: str, schema: Schema, *, required: bool = False, **more: object
) -> Schema:
    """A parameter of the query string."""
    parameter: Schema = {"name": name, "in": "query", "description": description}
    return {**parameter, "required": required, "schema": schema, **more}


def path_id(description: str, example: str) -> Schema:
    """The `id` in a path. Anything that is no known UUID is 404 `NOT_FOUND`."""
    schema = {"type": "string", "format": "uuid"}
    parameter: Schema = {"name": "id", "in": "path", "description": description}
    return {**parameter, "required": True, "schema": schema, "example": example}
