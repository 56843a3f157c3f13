"""What the door's room says: instants in venue time, results, what to do about a conflict."""

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.i18n import Language
from appliance.store.connection import Reader
from appliance.store.venue import get_venue
from terminal_bridge.context import ENVIRONMENT
from web.door.page import door_words
from web.portal.answer import language_of
from web.portal.device import describe_device

InWords = Callable[[int | None], str]


def instants_of(request: web.Request) -> InWords:
    """Instants (ms) as `sam. 21 nov. 19:30` of the venue's clock; an empty text for None."""
    zone, language = zone_of(request), language_of(request)

    def in_words(at: int | None) -> str:
        if at is None:
            return ""
        moment = datetime.fromtimestamp(at / 1000, UTC).astimezone(zone)
        return f"{language.short_date(moment.date())} {moment:%H:%M}"

    return in_words


def zone_of(request: web.Request) -> ZoneInfo:
    """The venue's time zone."""
    database = request[ENVIRONMENT].database
    return database.zones.zone(database.peek(_time_zone))


def result_words(language: Language) -> dict[str, str]:
    """The word of each verdict, as the door itself says it."""
    words = door_words(language)
    return {
        name.removeprefix("word."): word for name, word in words.items() if name.startswith("word.")
    }


def describe_version(version: str | None) -> str:
    """What a terminal said of itself: its browser and system, else its own words."""
    return (version and (describe_device(version) or version)) or ""


def role_words(language: Language) -> dict[str, str]:
    """What a terminal may do."""
    _ = language.gettext
    return {
        "scan": _("scan passes"),
        "search": _("scan, and search the list"),
        "override": _("scan, search, and let in all the same with a reason"),
    }


def _time_zone(reader: Reader) -> str:
    return get_venue(reader).time_zone
