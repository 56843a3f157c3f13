"""A route of the portal: who may call it is part of what it is (docs/security.md, S3)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
StaffRole = Literal["owner", "manager", "host", "door"]


@dataclass(frozen=True, slots=True)
class PortalRoute:
    """`path` begins with `/portal`; whose role includes `role` may call it.

    A route `of_the_house` (people, the box itself) exists once; the others exist in each
    environment, under `/test` too.
    """

    method: Literal["GET", "POST"]
    path: str
    role: StaffRole
    handler: Handler
    of_the_house: bool = False
