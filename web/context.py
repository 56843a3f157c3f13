"""What the composition root hands to handlers, beside the environment of each request."""

from dataclasses import dataclass

from aiohttp import web

from appliance.environment import Environment
from appliance.mail.postman import Postman
from appliance.webhooks.dispatcher import Dispatcher
from web.authentication import Gate
from web.turns import Turns


@dataclass(frozen=True, slots=True)
class Services:
    """What works for one environment while the application runs."""

    environment: Environment
    gate: Gate
    turns: Turns
    postman: Postman
    dispatcher: Dispatcher


SERVICES: web.RequestKey[Services] = web.RequestKey("services", Services)
