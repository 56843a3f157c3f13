"""What a request of the portal carries beside its environment and services."""

from aiohttp import web

from appliance.environment import Environment
from appliance.model.session import Session

HOUSE: web.RequestKey[Environment] = web.RequestKey("house", Environment)
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)
