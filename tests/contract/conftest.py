"""Fixtures of the contract tests: `venue` and `sandbox`, and a partner's `receiver`.

Every answer that a test gets is also compared with the OpenAPI document.
"""

import re

import pytest

from tests.app.api.described import faults_of_answer
from tests.app.conftest import receiver
from tests.conftest import Running
from tests.contract.venue import sandbox, venue
from web.api.openapi import build_document
from web.routes import PARTNER_ROUTE_TABLE

__all__ = ["receiver", "sandbox", "venue"]

DOCUMENT = build_document(PARTNER_ROUTE_TABLE, [])
PATHS = [
    (re.compile(r"(?:/test)?" + re.sub(r"\{\w+\}", r"[^/]+", path) + r"(?:\?.*)?"), operations)
    for path, operations in sorted(DOCUMENT["paths"].items())
]


@pytest.fixture(autouse=True)
def as_documented(monkeypatch):
    call = Running.call

    async def call_and_compare(self, method, path, **kwargs):
        status, body, headers = answer = await call(self, method, path, **kwargs)
        operations = next((found for pattern, found in PATHS if pattern.fullmatch(path)), {})
        if (operation := operations.get(method.lower())) is not None:
            described = operation["responses"][str(status)]
            assert faults_of_answer(DOCUMENT, described, headers, body) == []
        return answer

    monkeypatch.setattr(Running, "call", call_and_compare)
