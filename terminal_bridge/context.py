"""What a request carries: its environment, put there by the composition root."""

from aiohttp import web

from appliance.environment import Environment

ENVIRONMENT: web.RequestKey[Environment] = web.RequestKey("environment", Environment)
