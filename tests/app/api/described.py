"""Read the OpenAPI document in tests: operations, components, and violations of schemas."""

from jsonschema import Draft202012Validator
from multidict import CIMultiDict

from tests.app.api.closed import close_answers

JSON = "application/json"


def operations(document):
    """Yield (operation id, operation) for every path."""
    return [
        (operation["operationId"], operation)
        for item in document["paths"].values()
        for operation in item.values()
    ]


def resolve(document, thing):
    """Return the component that a `$ref` names, or `part` itself without a `$ref`."""
    while "$ref" in thing:
        _, _, section, name = thing["$ref"].split("/")
        thing = document["components"][section][name]
    return thing


def examples_of(body):
    """Return the examples of a request body or a response."""
    media = body.get("content", {}).get(JSON, {})
    return [example["value"] for example in media.get("examples", {}).values()]


def codes_of(answer):
    """Return the error codes in the examples of a response."""
    return {example["code"] for example in examples_of(answer) if "code" in example}


_kept = {}


def _closed(document):
    """Return the document's components, closed once for each document."""
    if id(document) not in _kept:
        _kept[id(document)] = (
            document,
            {"schemas": close_answers(document["components"]["schemas"])},
        )
    return _kept[id(document)][1]


def faults_of(document, schema, instance):
    """Return how `instance` violates a schema, with wrong formats and undocumented members."""
    whole = {**close_answers(schema), "components": _closed(document)}
    validator = Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(instance)]


def faults_of_answer(document, response, headers, body):
    """Return how an answer violates a documented response: content type, headers, body."""
    response, headers = resolve(document, response), CIMultiDict(headers)
    faults = faults_of(document, response["content"][JSON]["schema"], body)
    if "code" in body and body["code"] not in codes_of(response):
        faults.append(f"{body['code']} is not among its examples")
    if headers["Content-Type"].split(";")[0] != JSON:
        faults.append(f"Content-Type is {headers['Content-Type']}")
    for name, header in response.get("headers", {}).items():
        described = resolve(document, header)
        if name in headers:
            sent = int(headers[name]) if described["schema"]["type"] == "integer" else headers[name]
            faults += faults_of(document, described["schema"], sent)
        elif described["required"]:
            faults.append(f"{name} is missing")
    return faults
