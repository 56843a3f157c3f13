"""A page of this room: its frame, and what is wrong with the box just now."""

from aiohttp import web

from appliance.actions.deactivate_endpoint import SWITCHED_OFF
from appliance.model.endpoint import Endpoint
from appliance.store.conditions import list_conditions
from appliance.store.connection import Reader
from appliance.webhooks.conditions import ENDPOINT_BLOCKED
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import instants_of, portal_page


def room_page(request: web.Request, template: str, values: dict[str, object]) -> web.Response:
    """`portal/integrations/<template>.html`; its words stand in `words.html`."""
    environment = request[ENVIRONMENT]
    frame: dict[str, object] = {
        "moment": instants_of(request),
        "now": environment.database.clock.now(),
        "conditions": [condition.name for condition in environment.database.peek(list_conditions)],
        "room": f"{environment.prefix}/portal/integrations",
        "prefix": environment.prefix,
    }
    return portal_page(request, f"portal/integrations/{template}.html", {**frame, **values})


def health_of(reader: Reader, endpoint: Endpoint) -> str:
    """How an endpoint is doing: `switched_off`, `inactive`, `blocked`, `failing`, `new`, `good`."""
    noted = {c.name for c in list_conditions(reader) if c.subject == endpoint.id}
    if SWITCHED_OFF in noted:
        return "switched_off"
    if not endpoint.active:
        return "inactive"
    if ENDPOINT_BLOCKED in noted or endpoint.last_outcome == "blocked":
        return "blocked"
    if endpoint.failures_in_a_row:
        return "failing"
    return "new" if endpoint.last_success_at is None else "good"
