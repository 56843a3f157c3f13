"""What a partner's engineer reads first: the conventions that hold for every call."""

from collections.abc import Iterable

from appliance.errors import Refusal
from appliance.model.api_key import SCOPES
from web.api.openapi.schemas.errors import code_table

_SCOPE_MEANINGS = {
    "venue:read": "the venue, its tables and slots",
    "availability:read": "which tables are free",
    "reservations:read": "list reservations from every source",
    "reservations:write": "create reservations, cancel your own",
    "webhooks:manage": "everything under `/v1/webhooks`",
}


def write_guide(refusals: Iterable[Refusal]) -> str:
    """The description of the whole interface, in Markdown; KeyError for an unexplained scope."""
    scopes = "\n".join(f"- `{scope}`: {_SCOPE_MEANINGS[scope]}" for scope in SCOPES)
    return _GUIDE.format(scopes=scopes, codes=code_table(refusals))


TAGS = {
    "Venue": "The venue, and which of its tables are free.",
    "Reservations": "Reservations from every source; creation and cancellation of your own.",
    "Webhook endpoints": "The endpoints to which this box posts events.",
}

_GUIDE = """\
Block tables for bookings taken elsewhere, read the venue's reservations from all sources, and \
receive signed events. A key belongs to exactly one venue.

## Conventions

- Bodies are JSON (`Content-Type: application/json`), at most 64 KiB, not compressed. What \
parsers read differently is `INVALID_JSON` too: a member twice, `NaN`, a NUL character.
- Dates are `YYYY-MM-DD` and slots `HH:MM`, in the venue's time zone. A slot that crosses \
midnight belongs to the evening on which it starts.
- Members whose name ends in `At` are ISO 8601 instants in UTC.
- Amounts are whole units of the venue's `currency`.
- Within `/v1` changes only add: ignore members you do not know. What is to be removed is \
announced six months ahead with `Deprecation` and `Sunset` headers.

## Keys

Send `Authorization: Bearer <key>`. The venue issues keys; a key is shown \
once. `svc_live_…` works at the live address, `svc_test_…` at the test address, which has its own \
reservations, endpoints and terminals and sends no email. A key carries scopes:

{scopes}

## Rate limit

60 requests in any 60 seconds for each key. Beyond that: 429 with `Retry-After: 60`; refused \
requests do not count. Calls without a valid key are limited by address and never use up a key's \
budget.

## Retries

Retry after a 429 or 503 (wait `Retry-After`) and after network errors; repeat a creation with \
the same `idempotencyKey`. Never retry a 409.

## Errors

Every error body is `{{"error": <French>, "error_en": <English>, "code": <CODE>}}`. Test on \
`code`, never on the messages. A 400 may also carry `field`, the JSON path of the member at fault; \
a `VENUE_INACTIVE` with `field: date` is about that one evening. \
Checks run in this order: route, key, rate, scope, query or body, state. An unknown path is 404 \
`NOT_FOUND`; a known path with another method is 405 `METHOD_NOT_ALLOWED` with `Allow`.

{codes}

## Receiving events

1. Read the raw body; verify `X-Service-Signature` on it before parsing.
2. Refuse it when `t` is more than 300 seconds from your clock.
3. Compare in constant time.
4. Answer 2xx within 10 seconds; work afterwards.
5. Deduplicate on `X-Service-Delivery`: the same event may arrive more than once.
6. Order is not guaranteed: `occurredAt` tells when it happened, `status` is the state at sending.
7. Staff who seat a party at another table or change `guests` cause no event: the list shows it.

```python
import hmac


def is_genuine(secret: str, signature: str, raw_body: bytes, now: float) -> bool:
    parts = [part.partition("=")[::2] for part in signature.split(",")]
    t = next((value for name, value in parts if name == "t"), "")
    expected = hmac.new(secret.encode(), t.encode() + b"." + raw_body, "sha256").hexdigest()
    given = [value.encode() for name, value in parts if name == "v1"]
    signed = any(hmac.compare_digest(expected.encode(), value) for value in given)
    return signed and abs(now - int(t)) <= 300
```
"""
