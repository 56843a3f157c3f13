"""What people call the fields of the portal's forms: a refusal that stands apart says so."""

from collections.abc import Mapping

from appliance.i18n import Language
from appliance.i18n import mark as _

_NAMES: Mapping[str, str] = {
    "access": _("Rights"),
    "address": _("Address for your guests"),
    "app_url": _("Public address"),
    "ca": _("Certificates of the authority (PEM)"),
    "cancellation": _("Cancellation"),
    "capacity_max": _("Most guests"),
    "capacity_min": _("Fewest guests"),
    "currency": _("Currency"),
    "customer_email": _("Email"),
    "customer_name": _("The name"),
    "customer_phone": _("Phone"),
    "days": _("Days"),
    "dressCode": _("Dress code"),
    "end": _("To"),
    "endpoint": _("Endpoint"),
    "evening_ends_at": _("The evening ends at"),
    "first": _("First day"),
    "from": _("From"),
    "guests": _("Guests"),
    "host": _("Mail server"),
    "last": _("Last day"),
    "lateArrivalMinutes": _("A late table is kept for (minutes)"),
    "map_url": _("Link to a map"),
    "minimumAge": _("Minimum age"),
    "minimum_spend": _("Minimum spend"),
    "name": _("The name"),
    "notes": _("Notes"),
    "number": _("Number"),
    "others": _("Anything else"),
    "pin": _("SHA-256 fingerprint"),
    "port": _("Port"),
    "reason": _("Reason"),
    "recipient": _("Your own email address"),
    "request_expiry_hours": _("Requests expire after (hours)"),
    "role": _("Role"),
    "scope": _("Rights"),
    "security": _("Protection"),
    "sender": _("Sender of the letters"),
    "slot": _("Time"),
    "slug": _("Short name for addresses"),
    "start": _("From"),
    "time_zone": _("Time zone"),
    "to": _("To"),
    "type": _("Type"),
    "user": _("User name there"),
    "which": _("Which deliveries"),
}


def field_name(field: str | None, language: Language) -> str | None:
    """The name of that field on the page; None for one that no person sees."""
    name = _NAMES.get(field or "")
    return None if name is None else language.gettext(name)
