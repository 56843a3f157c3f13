"""How often one device may type wrong digits when it is paired (docs/security.md, S13)."""

from collections import OrderedDict
from collections.abc import Callable

from aiohttp import web

from appliance.clock import Clock
from appliance.house_errors import PairingLater

TRIES_OF_A_DEVICE = 3  # fewer than close the digits of an offer: nobody closes them alone
_WINDOW_SECONDS = 600.0  # as long as an offer lives
_MOST_DEVICES = 10_000


class PairingTries:
    """Wrong digits by the address they came from. The link's secret is never counted."""

    def __init__(self, clock: Clock, device_of: Callable[[web.Request], str]) -> None:
        self._clock = clock
        self._device_of = device_of
        self._tries: OrderedDict[str, list[float]] = OrderedDict()

    def take(self, request: web.Request) -> None:
        """Count a try before it is made, so that many at once are many; or PairingLater."""
        device, now = self._device_of(request), self._clock.monotonic()
        tries = [at for at in self._tries.get(device, ()) if now - at < _WINDOW_SECONDS]
        if len(tries) >= TRIES_OF_A_DEVICE:
            raise PairingLater
        self._tries[device] = [*tries, now]
        self._tries.move_to_end(device)
        if len(self._tries) > _MOST_DEVICES:  # the one that tried longest ago
            self._tries.popitem(last=False)

    def give_back(self, request: web.Request) -> None:
        """The digits were right: they do not count."""
        tries = self._tries.get(self._device_of(request))
        if tries:
            tries.pop()
