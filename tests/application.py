"""The real application, for tests that start many: its templates are compiled once a run."""

from functools import cache
from typing import Any

import jinja2
from aiohttp import web

from appliance.box import Box
from web import rendering
from web.application import build_application
from web.rendering import TEMPLATES


class _Compiled(jinja2.BytecodeCache):
    """What Jinja made of each template. A template that has changed is another one."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Any] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        bucket.code = self._made.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        self._made[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()
# The files and templates of all applications of a run are the same.
rendering.StaticFiles = cache(rendering.StaticFiles)  # type: ignore[assignment,misc]
rendering.make_templates = cache(rendering.make_templates)


def application_of(box: Box) -> web.Application:
    """What `venuebox serve` serves of `box`."""
    app = build_application(box)
    share_templates(app)
    return app


def share_templates(app: web.Application) -> None:
    """Let `app` take what others have compiled."""
    app[TEMPLATES].bytecode_cache = _COMPILED
