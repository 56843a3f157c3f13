"""The OpenAPI document is whole: routes, refusals, limits and examples (interface, 2 to 8)."""

import json
from dataclasses import dataclass

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from appliance import errors
from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from appliance.errors import Refusal
from appliance.model.api_key import SCOPES
from tests.web.api.closed import close_answers
from tests.web.api.described import codes_of, examples_of, faults_of, operations, resolve
from web.api.openapi.document import build_document, describe_servers
from web.routes import PARTNER_ROUTE_TABLE

# Answers that only staff or a terminal can get.
NOT_FOR_PARTNERS = {errors.WrongState}


@dataclass(frozen=True)
class Row:
    method: str
    path: str
    scope: str
    operation_id: str


@pytest.fixture(scope="module")
def document():
    return build_document(PARTNER_ROUTE_TABLE, describe_servers("https://box.example", "live"))


def test_the_document_is_valid_openapi_3_1(document):
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_each_route_is_described_with_its_method_id_and_scope(document):
    described = {
        (method.upper(), path, operation["operationId"], *operation["security"][0]["apiKey"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }

    assert described == {(r.method, r.path, r.operation_id, r.scope) for r in PARTNER_ROUTE_TABLE}


def test_a_route_without_a_description_is_refused():
    row = Row("GET", "/v1/tickets", "venue:read", "listTickets")

    with pytest.raises(ValueError, match="listTickets"):
        build_document([*PARTNER_ROUTE_TABLE, row], [])


def test_a_description_without_a_route_is_refused():
    with pytest.raises(ValueError, match=PARTNER_ROUTE_TABLE[0].operation_id):
        build_document(PARTNER_ROUTE_TABLE[1:], [])


def test_every_refusal_that_a_partner_can_get_is_documented(document):
    documented = set(document["components"]["schemas"]["ErrorCode"]["enum"])

    assert documented == {r.code for r in Refusal.__subclasses__() if r not in NOT_FOR_PARTNERS}


def test_every_documented_code_is_an_answer_of_some_operation_or_of_every_path(document):
    answers = [
        *(a for _, operation in operations(document) for a in operation["responses"].values()),
        *document["components"]["responses"].values(),
    ]

    shown = {code for answer in answers for code in codes_of(answer)}

    assert shown == set(document["components"]["schemas"]["ErrorCode"]["enum"])


def test_nothing_is_described_that_generators_stumble_over(document):
    """Each stopped one of those that `make clients` runs, or spoilt what it made."""
    text = json.dumps(document)
    for keyword in ("anyOf", "oneOf", "allOf"):  # classes without a name
        assert f'"{keyword}"' not in text
    assert "webhooks" not in document
    links = [
        link
        for _, operation in operations(document)
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert links
    assert all("requestBody" not in link for link in links)
    headers = [p for delivery in deliveries(document).values() for p in delivery["parameters"]]
    assert '"const"' not in json.dumps([headers, document["components"]["headers"]])


@pytest.mark.proves("interface 7: Error body")
def test_every_error_example_has_both_languages_and_stands_under_its_own_status(document):
    by_code = {r.code: r for r in Refusal.__subclasses__()}
    for _, operation in operations(document):
        for status, answer in operation["responses"].items():
            for example in examples_of(resolve(document, answer)):
                if "code" in example:
                    assert by_code[example["code"]].status == int(status)
                    assert example["error"] != example["error_en"]


def test_every_example_of_a_body_satisfies_its_schema(document):
    checked = 0
    for name, operation in operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for body in (resolve(document, body) for body in bodies):
            for example in examples_of(body):
                faults = faults_of(document, body["content"]["application/json"]["schema"], example)
                assert faults == [], name
                checked += 1
    assert checked > 50


def test_every_example_of_a_schema_satisfies_it(document):
    for name, schema in document["components"]["schemas"].items():
        for example in schema.get("examples", []):
            assert faults_of(document, schema, example) == [], name


def deliveries(document):
    """What a registered endpoint is sent, by event type."""
    callbacks = dict(operations(document))["createWebhook"]["callbacks"]
    return {name: item["{$request.body#/url}"]["post"] for name, item in callbacks.items()}


def test_every_event_type_is_a_callback_whose_example_satisfies_its_schema(document):
    assert tuple(deliveries(document)) == (*EVENT_TYPES, *EXTRA_TYPES)
    for delivery in deliveries(document).values():
        media = delivery["requestBody"]["content"]["application/json"]
        assert faults_of(document, media["schema"], media["example"]) == []
        headers = {parameter["name"] for parameter in delivery["parameters"]}
        assert headers == {"X-Service-Event", "X-Service-Delivery", "X-Service-Signature"}


def test_the_guide_names_every_scope_and_every_code(document):
    guide = document["info"]["description"]

    assert all(f"`{scope}`" in guide for scope in SCOPES)
    assert all(f"`{c}`" in guide for c in document["components"]["schemas"]["ErrorCode"]["enum"])


def test_every_operation_documents_key_scope_rate_and_our_own_faults(document):
    for name, operation in operations(document):
        assert {"401", "403", "429", "500", "503"} <= set(operation["responses"]), name
        assert ("413" in operation["responses"]) == ("requestBody" in operation), name


@pytest.mark.proves("interface 7: Retry advice")
@pytest.mark.parametrize(
    ("status", "header"),
    [("401", "WWW-Authenticate"), ("429", "Retry-After"), ("503", "Retry-After")],
)
def test_a_header_of_a_refusal_is_documented(document, status, header):
    for name, operation in operations(document):
        assert header in resolve(document, operation["responses"][status])["headers"], name


@pytest.mark.proves("V2")
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


def test_no_schema_forbids_what_a_later_version_may_add(document):
    assert '"additionalProperties": false' not in json.dumps(document)


@pytest.mark.proves("V15")
def test_everything_we_send_can_be_held_against_its_last_member(document):
    received = {"CreateReservation", "Customer", "RegisterWebhookEndpoint", "WebhookTest"}
    schemas = close_answers(document["components"]["schemas"])
    objects = {n: s for n, s in schemas.items() if "properties" in s}

    closed = {name for name, schema in objects.items() if not schema["additionalProperties"]}

    assert closed == set(objects) - received


def test_the_server_of_the_environment_comes_first():
    live = [server["url"] for server in describe_servers("https://box.example", "live")]
    test = [server["url"] for server in describe_servers("https://box.example", "test")]

    assert live == ["https://box.example", "https://box.example/test"]
    assert test == ["https://box.example/test", "https://box.example"]
