"""How often guests may send a form, in each environment."""

from collections import OrderedDict

from aiohttp import web

from appliance.box import Box
from appliance.clock import Clock
from appliance.core.errors import RateLimited
from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit
from appliance.http.request import ENVIRONMENT
from web.https_policy import SECURE

_TAPS_A_MINUTE = 60  # of one address: a whole party behind one router
_AN_HOUR = 3600.0
_EVERYBODY = ""
_MOST_ADDRESSES = 10_000


class GuestLimits:
    """The limits of one environment. RateLimited tells that one is reached."""

    def __init__(self, environment: Environment, clock: Clock) -> None:
        booking = environment.settings.booking
        self._taps = RateLimit(clock, _TAPS_A_MINUTE)
        self._forms = RateLimit(clock, booking.hourly_for_address, _AN_HOUR)
        self._all_forms = RateLimit(clock, booking.hourly, _AN_HOUR)
        self._open_for_address = booking.open_for_address
        self._booked: OrderedDict[str, set[str]] = OrderedDict()

    def count_tap(self, request: web.Request) -> None:
        """Somebody taps a button."""
        self._taps.spend(request.app[SECURE].caller_of(request))

    def count_booking(self, request: web.Request) -> tuple[set[str], int]:
        """Somebody sends a booking that may be granted.

        The ids of what their address has booked since the box began, and how many of them may still
        be to come: one, once all addresses together have sent many. So those who send most wait,
        and a newcomer still books.
        """
        caller = request.app[SECURE].caller_of(request)
        self._forms.spend(caller)
        booked = self._booked.setdefault(caller, set())
        self._booked.move_to_end(caller)
        if len(self._booked) > _MOST_ADDRESSES:  # the one that booked longest ago
            self._booked.popitem(last=False)
        try:
            self._all_forms.spend(_EVERYBODY)
        except RateLimited:
            return booked, 1
        return booked, self._open_for_address


DESKS: web.AppKey[dict[str, GuestLimits]] = web.AppKey("desks", dict)


def make_guest_limits(app: web.Application, box: Box) -> None:
    """Give `app` a desk for each environment of the box."""
    desks: dict[str, GuestLimits] = {
        each.name: GuestLimits(each, box.clock) for each in box.environments
    }
    app[DESKS] = desks


def guest_limits_of(request: web.Request) -> GuestLimits:
    """The desk of the request's environment."""
    return request.app[DESKS][request[ENVIRONMENT].name]
