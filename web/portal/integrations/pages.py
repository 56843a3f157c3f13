"""A page of this room: its frame, its words, and what is wrong with the box just now."""

from dataclasses import dataclass
from datetime import tzinfo

from aiohttp import web

from appliance.store.conditions import Condition, list_conditions
from appliance.store.connection import Reader
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, portal_page
from web.portal.integrations.words import Moments, banners, outcome_words, state_words


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every page of the room needs of the database."""

    zone: tzinfo
    now: int
    conditions: tuple[Condition, ...]


def read_surroundings(reader: Reader) -> Surroundings:
    """As they are now."""
    zone = reader.zones.zone(get_venue(reader).time_zone)
    return Surroundings(zone, reader.now, tuple(list_conditions(reader)))


def room_page(
    request: web.Request, template: str, around: Surroundings, values: dict[str, object]
) -> web.Response:
    """`portal/integrations/<template>.html` with the words that it uses."""
    language, environment = language_of(request), request[ENVIRONMENT]
    words: dict[str, object] = {
        "moment": Moments(language, around.zone, around.now),
        "now": around.now,
        "banners": banners(around.conditions, language),
        "outcome": lambda code, http: outcome_words(code, http, language),
        "state_of": lambda state: state_words(state, language),
        "room": f"{environment.prefix}/portal/integrations",
        "prefix": environment.prefix,
    }
    return portal_page(request, f"portal/integrations/{template}.html", {**words, **values})
