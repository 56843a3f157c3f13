"""The partner API as a Postman collection (format 2.1), from the OpenAPI document's examples.

It runs from top to bottom, in Postman, newman and Bruno: each call keeps what later ones need in
variables, and tests that the answer is a documented success.
"""

import json
from collections.abc import Iterator
from typing import Any

# The order of the calls, and what each keeps: variable → JavaScript expression of the `body`.
STEPS: dict[str, dict[str, str]] = {
    "getKey": {},
    "getVenue": {},
    "getAvailability": {},
    "getAvailabilityRange": {},
    "createReservation": {"reservation": "body.serviceReservationId"},
    "listReservations": {},
    "getReservation": {},
    "changeReservation": {},
    "cancelReservation": {},
    "createHold": {"hold": "body.holdId"},
    "deleteHold": {},
    "listEvents": {},
    "createWebhook": {"endpoint": "body.id"},
    "listWebhooks": {},
    "getWebhook": {},
    "changeWebhook": {},
    "testWebhook": {"delivery": "body.deliveryIds[0]"},
    "listDeliveries": {},
    "getDelivery": {},
    "replayWebhook": {},
    "rollWebhook": {},
    "deleteWebhook": {},
}
_IDS = {"Reservations": "reservation", "Holds": "hold", "Webhook endpoints": "endpoint"}
_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"


def make_collection(document: dict[str, Any]) -> dict[str, Any]:
    """Return the collection for an OpenAPI document. Its variables are `url`, `key` and ids."""
    described = dict(_operations(document))
    info = document["info"]
    return {
        "info": {
            "name": info["title"], "version": info["version"], "schema": _SCHEMA,
            "description": "Set the variable `key` to your key, then run the collection.",
        },
        "auth": {"type": "bearer", "bearer": [_value("token", "{{key}}")]},
        "variable": [
            _value("url", document["servers"][0]["url"]),
            *(_value(name, "") for name in ("key", *_IDS.values(), "delivery")),
        ],
        "item": [_item(*described[step], step) for step in STEPS],
    }  # fmt: skip


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str, dict[str, Any]]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield operation["operationId"], (method.upper(), path, operation)


def _item(method: str, path: str, operation: dict[str, Any], step: str) -> dict[str, Any]:
    id_ = _IDS.get(operation["tags"][0], "")
    url = "{{url}}" + path.replace("{id}", f"{{{{{id_}}}}}").replace("{delivery}", "{{delivery}}")
    query = "&".join(
        f"{each['name']}={each['example']}"
        for each in operation.get("parameters", ())
        if each["in"] == "query" and each["required"]
    )
    request: dict[str, Any] = {
        "method": method, "url": f"{url}?{query}" if query else url,
        "description": operation["description"],
    }  # fmt: skip
    if "requestBody" in operation:
        request["header"] = [{"key": "Content-Type", "value": "application/json"}]
        media = operation["requestBody"]["content"]["application/json"]
        request["body"] = {"mode": "raw", "raw": _body(media["examples"]["example"]["value"])}
    successes = [int(status) for status in operation["responses"] if status.startswith("2")]
    script = [
        f"pm.test('{step}', () => pm.expect(pm.response.code).to.be.oneOf({successes}));",
        "const body = pm.response.json();",
        *(f"pm.collectionVariables.set('{name}', {code});" for name, code in STEPS[step].items()),
    ]
    event = {"listen": "test", "script": {"type": "text/javascript", "exec": script}}
    return {"name": operation["summary"], "request": request, "event": [event]}


def _body(example: dict[str, Any]) -> str:
    """Return the example as JSON, with this run's own ids and idempotency keys."""
    own = {"idempotencyKey": "{{$guid}}", "endpointId": "{{endpoint}}"}
    return json.dumps(example | {name: own[name] for name in own if name in example}, indent=2)


def _value(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": value, "type": "string"}
