"""A page of this room: its frame, its words, and what is wrong with the box just now."""

from dataclasses import dataclass
from datetime import tzinfo

from aiohttp import web

from appliance.errors import NotFound
from appliance.model.booking import parse_uuid
from appliance.store.conditions import Condition, list_conditions
from appliance.store.connection import Reader
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, portal_page
from web.portal.context import SESSION
from web.portal.forms import Form
from web.portal.guard import staff_of
from web.portal.integrations.once import INTEGRATIONS, Integrations
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
    request: web.Request,
    template: str,
    around: Surroundings,
    values: dict[str, object],
    status: int = 200,
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
        "token": environment.database.tokens.new_link_secret(),
        "problem": None,
    }
    return portal_page(request, f"portal/integrations/{template}.html", {**words, **values}, status)


def id_of(request: web.Request) -> str:
    """The id in the path; NotFound when it is none."""
    found = parse_uuid(request.match_info["id"])
    if found is None:
        raise NotFound
    return found


def memory(request: web.Request) -> Integrations:
    """What the room remembers."""
    return request.config_dict[INTEGRATIONS]


def actor_of(request: web.Request) -> str:
    """Who does it, for the security log."""
    return f"staff:{staff_of(request).id}"


def token_of(form: Form) -> str:
    """By what a form that is sent twice is known."""
    return form.text("once", 64)


def put_secret(request: web.Request, subject: str, secret: str) -> None:
    """Let this session see a secret on the next page about `subject`, and never again."""
    memory(request).once.put_secret(request[SESSION].id, subject, secret)


def take_secret(request: web.Request, subject: str) -> str | None:
    """The secret that this session is to see now."""
    return memory(request).once.take_secret(request[SESSION].id, subject)
