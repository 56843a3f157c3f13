"""The OpenAPI document is complete: routes, errors, limits, examples (interface, 2 to 8)."""

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from appliance.core import errors
from appliance.core.errors import ApiError
from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from tests.app.api.closed import close_answers
from tests.app.api.described import examples_of, faults_of, operations, resolve
from web.api.openapi import build_document, describe_servers
from web.routes import PARTNER_ROUTE_TABLE

# Answers that only staff or a terminal can get.
NOT_FOR_PARTNERS = {errors.WrongState}


@pytest.fixture(scope="module")
def document():
    return build_document(PARTNER_ROUTE_TABLE, describe_servers("https://box.example", "live"))


def test_the_document_is_valid_openapi_3_1(document):
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_the_document_has_the_version_of_the_interface_and_the_build_of_the_program(document):
    assert document["info"]["version"] == f"1.0+{version('venuebox')}"


def test_each_route_is_documented_with_its_method_id_and_scope(document):
    described = {
        (method.upper(), path, operation["operationId"], *operation["security"][0]["apiKey"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert described == {
        (r.method, r.path, r.operation_id, *([r.scope] if r.scope else []))
        for r in PARTNER_ROUTE_TABLE
    }


def test_every_error_that_a_partner_can_get_is_documented(document):
    documented = set(document["components"]["schemas"]["ErrorCode"]["examples"])
    assert documented == {r.code for r in ApiError.__subclasses__() if r not in NOT_FOR_PARTNERS}


def test_every_error_example_has_both_languages_and_its_own_status(document):
    by_code = {r.code: r for r in ApiError.__subclasses__()}
    for _, operation in operations(document):
        for status, answer in operation["responses"].items():
            for example in examples_of(resolve(document, answer)):
                if "code" in example:
                    assert by_code[example["code"]].status == int(status)
                    assert example["error"] != example["error_en"]


def test_every_body_example_satisfies_its_schema(document):
    checked = 0
    for name, operation in operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for body in (resolve(document, body) for body in bodies):
            for example in examples_of(body):
                faults = faults_of(document, body["content"]["application/json"]["schema"], example)
                assert faults == [], name
                checked += 1
    assert checked > 50


def test_every_schema_example_satisfies_its_schema(document):
    for name, schema in document["components"]["schemas"].items():
        for example in schema.get("examples", []):
            assert faults_of(document, schema, example) == [], name


def deliveries(document):
    """Return the callbacks of a registered endpoint by event type."""
    callbacks = dict(operations(document))["createWebhook"]["callbacks"]
    return {name: item["{$request.body#/url}"]["post"] for name, item in callbacks.items()}


def test_every_event_type_is_a_callback_whose_example_satisfies_its_schema(document):
    assert tuple(deliveries(document)) == (*EVENT_TYPES, *EXTRA_TYPES)
    for delivery in deliveries(document).values():
        media = delivery["requestBody"]["content"]["application/json"]
        assert faults_of(document, media["schema"], media["example"]) == []
        headers = {parameter["name"] for parameter in delivery["parameters"]}
        added = {
            "X-Service-Event-Id",
            "X-Service-Environment",
            "X-Service-Attempt",
            "X-Service-Venue",
        }
        assert headers == added | {
            "X-Service-Event", "X-Service-Delivery", "X-Service-Signature"
        }  # fmt: skip


def test_each_subscribable_event_type_can_be_sent_as_a_test(document):
    request = document["components"]["schemas"]["TestEventRequest"]
    assert request["properties"]["type"]["enum"] == [*EVENT_TYPES, *EXTRA_TYPES, None]


def test_the_limits_of_section_8_are_in_the_schemas(document):
    schemas = document["components"]["schemas"]
    create = schemas["CreateReservation"]["properties"]
    listed = document["paths"]["/v1/reservations"]["get"]["parameters"]
    query = {parameter["name"]: parameter["schema"] for parameter in listed}

    assert create["notes"]["maxLength"] == 500
    assert create["externalRef"]["maxLength"] == 120
    assert create["idempotencyKey"]["maxLength"] == 120
    assert create["guests"]["minimum"] == 1
    assert (query["limit"]["minimum"], query["limit"]["maximum"]) == (1, 200)
    assert (query["limit"]["default"], query["page"]["default"]) == (50, 1)
    assert query["page"]["minimum"] == 1


def test_every_response_schema_forbids_additional_members(document):
    open_bodies = {"CreateReservation", "Customer", "RegisterWebhookEndpoint"}
    schemas = close_answers(document["components"]["schemas"])
    objects = {n: s for n, s in schemas.items() if "properties" in s}
    closed = {name for name, schema in objects.items() if not schema["additionalProperties"]}
    assert closed == set(objects) - open_bodies


ROOT = Path(__file__).parents[3]
DESCRIPTION = build_document(PARTNER_ROUTE_TABLE, [])["info"]["description"]
WEBHOOKS = (ROOT / "docs/partners/webhooks.md").read_text("utf-8")
TEXTS = {"webhooks": WEBHOOKS, "openapi": DESCRIPTION}
(CASE, *_) = json.loads((ROOT / "tests/vectors/webhook_signature.json").read_text("utf-8"))["cases"]


def sample(text: str) -> Any:
    code = re.search(r"```python\n(.*?def is_genuine.*?)```", text, re.DOTALL)
    assert code is not None
    namespace: dict[str, Any] = {}
    exec(code[1], namespace)  # noqa: S102 - the text is ours
    return namespace["is_genuine"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_documented_signature_check_accepts_the_test_vector(text):
    is_genuine = sample(TEXTS[text])
    assert is_genuine(CASE["secrets"][0], CASE["header"], CASE["body"].encode(), CASE["t"])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "header", ["", ",", "v1", "t=", "v1=é", "t=1,v1=é", "t=x,v1=", "=", "t=é,v1=0", "nonsense"]
)
def test_the_documented_signature_check_rejects_invalid_input_without_crashing(text, header):
    assert sample(TEXTS[text])("whsec_x", header, b"{}", 0.0) is False
