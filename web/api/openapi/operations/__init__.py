"""What each operation (interface, section 4) takes and answers, by operation id."""

from web.api.openapi import samples
from web.api.openapi.operations.operation import Operation
from web.api.openapi.operations.reservations import reservation_operations
from web.api.openapi.operations.venue import venue_operations
from web.api.openapi.operations.webhooks import webhook_operations


def describe_operations(wish: samples.Wish) -> dict[str, Operation]:
    """Every described operation by its id; `build_document` compares them with the routes."""
    return {**venue_operations(wish), **reservation_operations(wish), **webhook_operations()}
