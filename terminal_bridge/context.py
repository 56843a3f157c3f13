"""What a request and the application carry, put there by the composition root."""

from aiohttp import web

from appliance.environment import Environment
from terminal_bridge.pairing_tries import PairingTries
from terminal_bridge.readers.readers import Readers

ENVIRONMENT: web.RequestKey[Environment] = web.RequestKey("environment", Environment)
PAIRING_TRIES: web.AppKey[PairingTries] = web.AppKey("pairing tries", PairingTries)
READERS: web.AppKey[Readers] = web.AppKey("readers", Readers)
