"""Rate limits on guests' forms, separate for each environment."""

from collections import OrderedDict

from aiohttp import web

from appliance.box import Box
from appliance.clock import Clock
from appliance.core.errors import RateLimited
from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit
from appliance.http.request import ENVIRONMENT
from web.middleware import SECURE

_TAPS_A_MINUTE = 60  # per address: a whole party may share one router
_AN_HOUR = 3600.0
_EVERYBODY = ""
_MOST_ADDRESSES = 10_000


class GuestLimits:
    """The limits of one environment. Methods raise RateLimited when one is reached."""

    def __init__(self, environment: Environment, clock: Clock) -> None:
        booking = environment.settings.booking
        self._taps = RateLimit(clock, _TAPS_A_MINUTE)
        self._forms = RateLimit(clock, booking.hourly_for_address, _AN_HOUR)
        self._all_forms = RateLimit(clock, booking.hourly, _AN_HOUR)
        self._open_for_address = booking.open_for_address
        self._booked: OrderedDict[str, set[str]] = OrderedDict()

    def count_tap(self, request: web.Request) -> None:
        """Count a POST from a guest's page."""
        self._taps.spend(request.app[SECURE].caller_of(request))

    def count_booking(self, request: web.Request) -> tuple[set[str], int]:
        """Count a booking request.

        Return the ids booked from this address since the start, and how many of them may be in
        the future: 1 once the limit of all addresses is reached, so that new guests can still book.
        """
        caller = request.app[SECURE].caller_of(request)
        self._forms.spend(caller)
        booked = self._booked.setdefault(caller, set())
        self._booked.move_to_end(caller)
        if len(self._booked) > _MOST_ADDRESSES:  # the least recently used
            self._booked.popitem(last=False)
        try:
            self._all_forms.spend(_EVERYBODY)
        except RateLimited:
            return booked, 1
        return booked, self._open_for_address


DESKS: web.AppKey[dict[str, GuestLimits]] = web.AppKey("desks", dict)


def make_guest_limits(app: web.Application, box: Box) -> None:
    """Add the guest rate limits of each environment to `app`."""
    desks: dict[str, GuestLimits] = {
        each.name: GuestLimits(each, box.clock) for each in box.environments
    }
    app[DESKS] = desks


def guest_limits_of(request: web.Request) -> GuestLimits:
    """Return the guest rate limits of the request's environment."""
    return request.app[DESKS][request[ENVIRONMENT].name]
