"""The page `/portal/tonight/figures`: the figures of an evening and of earlier weeks, to print."""

from collections.abc import Callable

from aiohttp import web

from appliance.http.request import ENVIRONMENT
from appliance.reservations.figures import Figures, compare_evenings
from appliance.venue.model import find_tonight, get_venue
from web.portal.forms import date_parameter
from web.portal.responses import clock_formatter, portal_page

# The dimensions of the chart of arrivals, in SVG units.
_BAR, _HEIGHT = 24, 120


async def show_figures(request: web.Request) -> web.Response:
    """`GET …/figures`: show the figures of `?date=` (default: tonight)."""
    database = request[ENVIRONMENT].database
    tonight = await database.read(find_tonight)
    evenings = await database.read(compare_evenings, date_parameter(request) or tonight)
    venue = await database.read(get_venue)
    values = {
        "now_": evenings[0],
        "before": evenings[1:],
        "average": {
            name: round(sum(getattr(each, name) for each in evenings[1:]) / len(evenings[1:]))
            for name in Figures.__slots__
            if isinstance(getattr(evenings[0], name), int)
        },
        "venue": venue,
        "bars": _draw(evenings[0], clock_formatter(request)),
        "bar": _BAR,
        "height": _HEIGHT,
    }
    return portal_page(request, "portal/tonight/figures.html", values)


def _draw(figures: Figures, clock: Callable[[int], str]) -> list[dict[str, object]]:
    """Return a bar for each quarter of an hour: place, height, people and time.

    Only full hours, and the first quarter, have a `label`.
    """
    most = max((people for _, people in figures.arrivals), default=1)
    return [
        {
            "x": n * _BAR,
            "height": round(people / most * _HEIGHT),
            "people": people,
            "time": clock(at),
            "label": clock(at) if n == 0 or clock(at).endswith(":00") else "",
        }
        for n, (at, people) in enumerate(figures.arrivals)
    ]
