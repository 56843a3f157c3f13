"""The answers that many operations share, and the headers that answers carry."""

from collections.abc import Sequence
from itertools import groupby

from appliance import errors
from appliance.errors import Refusal
from appliance.model.reservation import STATUSES
from web.api.openapi.schemas.errors import error_response
from web.api.openapi.schemas.parts import Schema

_EVERY_OPERATION = ("Unauthorized", "RateLimited", "InternalError", "Unavailable")
_DESCRIPTIONS = {
    400: "The request is malformed or asks for what cannot be; `field` says where.",
    403: "The key lacks the scope of this operation.",
    404: "Not found.",
    409: "The request cannot be granted in the present state. Do not retry.",
}


def shared_responses() -> dict[str, Schema]:
    """Component responses by name; unknown path, wrong method and wrong name are nobody's own."""
    responses = {name: error_response(*entry) for name, entry in _shared().items()}
    responses["MethodNotAllowed"]["headers"] = {"Allow": {"$ref": "#/components/headers/Allow"}}
    return responses


def shared_headers() -> dict[str, Schema]:
    """Component headers by name."""
    true: Schema = {"type": "string", "enum": ["true"]}
    return {
        "Retry-After": _header("Seconds to wait.", {"type": "integer", "minimum": 1}, 60),
        "WWW-Authenticate": _header(
            "The scheme to use.", {"type": "string"}, 'Bearer realm="venuebox"'
        ),
        "Allow": _header("The methods this path has.", {"type": "string"}, "GET, POST"),
        "Idempotent-Replayed": _header("Says that this is a replay.", true, "true"),
        "Reservation-Status": _header(
            "The status of the reservation now; the body is that of its creation.",
            {"type": "string", "enum": list(STATUSES)},
            "cancelled",
        ),
        "Idempotency-Body-Mismatch": {
            **_header("Present when the body differs from the original's.", true, "true"),
            "required": False,
        },
    }


def shared_refusals() -> list[Refusal]:
    """Those that no single operation names."""
    shared = [refusal for _, refusals in _shared().values() for refusal in refusals]
    return [errors.InvalidJson(), errors.HttpsRequired(), errors.ScopeMissing(scope=""), *shared]


def refusal_responses(
    refusals: Sequence[Refusal], *, scope: str, has_body: bool
) -> dict[str, Schema]:
    """The error answers of one operation by status: its own `refusals` and the shared ones."""
    own: list[Refusal] = [errors.HttpsRequired(), errors.ScopeMissing(scope=scope), *refusals]
    if has_body:
        own.insert(0, errors.InvalidJson())
    by_status = groupby(sorted(own, key=_status), key=_status)
    responses = {
        str(status): error_response(_DESCRIPTIONS[status], list(group))
        for status, group in by_status
    }
    names = (*_EVERY_OPERATION, "BodyTooLarge") if has_body else _EVERY_OPERATION
    shared = _shared()
    for name in names:
        responses[str(shared[name][1][0].status)] = {"$ref": f"#/components/responses/{name}"}
    return dict(sorted(responses.items()))


def _shared() -> dict[str, tuple[str, tuple[Refusal, ...]]]:
    """Description and refusals of each component response."""
    return {
        "Unauthorized": (
            "No valid key: missing, unknown, of the other environment, or revoked.",
            (errors.Unauthorized(), errors.KeyRevoked()),
        ),
        "UnknownPath": ("No such path.", (errors.NotFound(),)),
        "MethodNotAllowed": (
            "The path exists, but not with this method.",
            (errors.MethodNotAllowed(),),
        ),
        "BodyTooLarge": ("The body is over 64 KiB.", (errors.BodyTooLarge(),)),
        "Misdirected": (
            "Asked for under a name that is not this box's. Use the address you were given.",
            (errors.Misdirected(),),
        ),
        "RateLimited": ("Over 60 requests in 60 seconds: wait.", (errors.RateLimited(),)),
        "InternalError": ("A fault of the box. Nothing was recorded.", (errors.InternalError(),)),
        "Unavailable": (
            "The box is stopping, overloaded or out of disk. Nothing was recorded: wait.",
            (errors.Unavailable(),),
        ),
    }


def _status(refusal: Refusal) -> int:
    return refusal.status


def _header(description: str, schema: Schema, example: object) -> Schema:
    return {"description": description, "required": True, "schema": schema, "example": example}
