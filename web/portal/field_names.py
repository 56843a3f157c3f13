"""What people call those fields of the portal's forms that a refusal stands apart from."""

from collections.abc import Mapping

from appliance.i18n import Language
from appliance.i18n import mark as _

_NAMES: Mapping[str, str] = {
    "access": _("Rights"),
    "ca": _("Certificates of the authority (PEM)"),
    "capacity_max": _("Most guests"),
    "capacity_min": _("Fewest guests"),
    "customer_email": _("Email"),
    "customer_name": _("The name"),
    "customer_phone": _("Phone"),
    "endpoint": _("Endpoint"),
    "first": _("First day"),
    "from": _("From"),
    "guests": _("Guests"),
    "last": _("Last day"),
    "minimum_spend": _("Minimum spend"),
    "name": _("The name"),
    "notes": _("Notes"),
    "number": _("Number"),
    "pin": _("SHA-256 fingerprint"),
    "reason": _("Reason"),
    "recipient": _("Your own email address"),
    "role": _("Role"),
    "scope": _("Rights"),
    "slot": _("Time"),
    "to": _("To"),
    "type": _("Type"),
    "which": _("Which deliveries"),
}


def field_name(field: str | None, language: Language) -> str | None:
    """The name of that field on the page; None for one that no person sees."""
    name = _NAMES.get(field or "")
    return None if name is None else language.gettext(name)
