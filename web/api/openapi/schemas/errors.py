"""The error body (interface, section 7), and every refusal as a documented answer."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from appliance.errors import Refusal
from web.api.openapi.schemas.parts import Schema, answer_object, ref, text

_BRACES = re.compile(r"\{\w+\}\.?")


def error_schemas(refusals: Sequence[Refusal]) -> dict[str, Schema]:
    """Component schemas by name; `refusals` are all that the interface can answer."""
    return {
        "ErrorCode": text(
            "What to test on: messages may change, codes do not.",
            enum=list(dict.fromkeys(refusal.code for refusal in refusals)),
        ),
        "Error": answer_object(
            {
                "error": text("Message in French, for people."),
                "error_en": text("The same in English."),
                "code": ref("ErrorCode"),
                "field": text(
                    "JSON path of the offending member or query parameter, where there is one.",
                    examples=["customer.email"],
                ),
            },
            optional=("field",),
            description="The body of every refusal.",
        ),
    }


def error_response(description: str, refusals: Sequence[Refusal]) -> Schema:
    """One documented answer: the refusals that share a status, each as an example."""
    media = {"schema": ref("Error"), "examples": _examples(refusals)}
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
