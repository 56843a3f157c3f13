"""Sentences about reservations: history, and reasons for a decline."""

from appliance.core.i18n import mark as _

STATUS_WORDS = {
    "requested": _("Requested"),
    "pending": _("Payment due"),
    "partial": _("Partly paid"),
    "confirmed": _("Confirmed"),
    "completed": _("Over"),
    "cancelled": _("Cancelled"),
    "declined": _("Declined"),
}
SOURCE_WORDS = {
    "partner": _("From a partner"),
    "platform": _("From the web"),
    "manual": _("Entered here"),
}
