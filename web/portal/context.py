"""What a request of the portal carries beside its environment and services."""

from collections.abc import Callable

from aiohttp import web

from appliance.box import Box
from appliance.environment import Environment
from appliance.model.session import Session

BOX: web.AppKey[Box] = web.AppKey("box", Box)
RESTART: web.AppKey[Callable[[], None]] = web.AppKey("restart")
"""Stops and begins anew within the process, with the settings as they then are; may be absent."""
HOUSE: web.RequestKey[Environment] = web.RequestKey("house", Environment)
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)
