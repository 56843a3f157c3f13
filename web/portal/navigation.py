"""The rooms of the portal, and who sees the way to which."""

from dataclasses import dataclass

from appliance.i18n import mark as _
from appliance.model.staff import StaffMember
from web.portal.route import StaffRole


@dataclass(frozen=True, slots=True)
class Area:
    """An entry of the navigation; `label` is the English that stands in the catalogues."""

    name: str
    label: str
    icon: str
    role: StaffRole
    of_the_house: bool = False


AREAS = (
    Area("tonight", _("Tonight"), "evening", "door"),
    Area("reservations", _("Reservations"), "list", "host"),
    Area("venue", _("Venue"), "table", "manager"),
    Area("door", _("Door"), "door", "manager"),
    Area("integrations", _("Integrations and API"), "plug", "manager"),
    Area("people", _("People"), "people", "owner", of_the_house=True),
    Area("box", _("The box"), "box", "manager", of_the_house=True),
)


def areas_for(person: StaffMember, environment: str) -> list[Area]:
    """What this person may open in that environment."""
    return [
        area
        for area in AREAS
        if person.may(area.role) and (environment == "live" or not area.of_the_house)
    ]
