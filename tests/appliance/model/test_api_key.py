"""The scopes of a key (contract section 5)."""

import pytest

from appliance.model.api_key import READ_ONLY_SCOPES, SCOPES
from web.routes import PARTNER_ROUTE_TABLE


@pytest.mark.proves("interface 4: Scopes")
def test_every_scope_opens_a_call_and_every_call_needs_a_scope_that_exists():
    assert {route.scope for route in PARTNER_ROUTE_TABLE} == set(SCOPES)


def test_a_read_only_key_opens_nothing_that_changes_anything():
    opened = [route for route in PARTNER_ROUTE_TABLE if route.scope in READ_ONLY_SCOPES]

    assert {route.method for route in opened} == {"GET"}
    assert {route.path for route in opened} == {
        "/v1/venue", "/v1/availability", "/v1/reservations"
    }  # fmt: skip
