"""Trust a receiver: say what its certificate is checked against, for one in the house."""

from appliance.actions.register_endpoint import EndpointsChanged
from appliance.errors import field_invalid
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint


def trust_receiver(
    tx: Transaction, endpoint_id: str, *, ca: str | None = None, pin: bytes | None = None
) -> None:
    """Trust what `ca` has signed (see `parse_ca`), or the one certificate of `pin`, alone.

    With neither, what this machine trusts. There is no way to check nothing.
    In force at its next connection. NotFound if unknown; ValidationError for both at once, or
    for a receiver that speaks plain http.
    """
    endpoint = get_endpoint(tx, endpoint_id)
    if ca is not None and pin is not None:
        raise field_invalid("pin", "ca_or_pin")
    if (ca is not None or pin is not None) and endpoint.url[:5].lower() == "http:":
        raise field_invalid("url", "no_certificate")
    tx.update("endpoint", endpoint_id, ca=ca, pin=pin)
    tx.notices.append(EndpointsChanged(endpoint_id))
