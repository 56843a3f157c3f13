"""The error body of contract section 7, and every refusal as a documented answer."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from appliance.errors import Refusal
from web.api.openapi.schemas.parts import Schema, answer_object, text

_BRACES = re.compile(r"\{\w+\}\.?")


def error_schemas(refusals: Sequence[Refusal]) -> dict[str, Schema]:
    """Component schemas by name; `refusals` are all that the interface can answer."""
    members = {
        "error": text("Message in French, for people."),
        "error_en": text("The same in English."),
        "code": {"$ref": "#/components/schemas/ErrorCode"},
    }
    field = text(
        "JSON path of the offending member or query parameter, where there is one.",
        examples=["customer.email"],
    )
    return {
        "ErrorCode": text(
            "What to test on: messages may change, codes do not.",
            enum=list(dict.fromkeys(refusal.code for refusal in refusals)),
        ),
        "Error": answer_object(members, description="Every refusal but a 400."),
        "BadRequest": answer_object(
            {**members, "field": field},
            optional=("field",),
            description="A 400: the error body, with the place of the fault.",
        ),
    }


def error_response(description: str, refusals: Sequence[Refusal]) -> Schema:
    """One documented answer: the refusals that share a status, each as an example."""
    base = "BadRequest" if refusals[0].status == 400 else "Error"
    codes = list(dict.fromkeys(refusal.code for refusal in refusals))
    schema = {
        "allOf": [
            {"$ref": f"#/components/schemas/{base}"},
            {"properties": {"code": {"enum": codes}}},
        ]
    }
    media = {"schema": schema, "examples": _examples(refusals)}
    response: Schema = {"description": description, "content": {"application/json": media}}
    headers = _headers(refusals)
    return {**response, "headers": headers} if headers else response


def code_table(refusals: Iterable[Refusal]) -> str:
    """The refusals as a Markdown table: status, code, meaning."""
    rows = [
        f"| {refusal.status} | `{refusal.code}` | {_BRACES.sub('…', refusal.english)} |"
        for refusal in refusals
    ]
    return "\n".join(["| HTTP | Code | Meaning |", "|---|---|---|", *rows])


def _examples(refusals: Iterable[Refusal]) -> dict[str, Any]:
    return {
        refusal.code: {"summary": refusal.code, "value": refusal.body()} for refusal in refusals
    }


def _headers(refusals: Sequence[Refusal]) -> Schema:
    """The headers that every one of these refusals carries."""
    names = set.intersection(*(set(refusal.headers) for refusal in refusals))
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sorted(names)}
