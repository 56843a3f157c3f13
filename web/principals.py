"""Who may call which route: declared where a route is added, and tested route by route.

An undeclared route fails the build (docs/security.md, S3): tests/web/test_principals.py walks
the application's router.
"""

from dataclasses import dataclass
from typing import Literal

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Principal:
    """`anybody` may open links, pages and files; the others show who they are.

    `needs` is the key's scope, or the role that the person's must include. Terminals are told
    their roles by the handlers of terminal_bridge.
    """

    kind: Literal["anybody", "key", "terminal", "staff"]
    needs: str | None = None


ANYBODY = Principal("anybody")
PRINCIPALS: web.AppKey[dict[tuple[str, str], Principal]] = web.AppKey("principals", dict)
