"""Scripts, styles and pictures: their addresses, and how long a browser may keep them."""

import hashlib
from pathlib import Path

from aiohttp import web

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
}
_KEEP = "public, max-age=31536000, immutable"


class StaticFiles:
    """The files of some folders. They are listed once: a name not listed is not served."""

    def __init__(self, *folders: Path) -> None:
        self._paths = {
            path.relative_to(folder).as_posix(): path
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }
        self._versions = {
            name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            for name, path in self._paths.items()
        }

    def url(self, name: str) -> str:
        """The address of a file, which changes with its contents."""
        version = self._versions.get(name)
        return f"/static/{name}?v={version}" if version else f"/static/{name}"

    def respond(self, name: str, version: str) -> web.StreamResponse:
        """The file; kept for a year when asked for by the `version` of its contents."""
        path = self._paths.get(name)
        if path is None:
            raise web.HTTPNotFound
        keep = _KEEP if version == self._versions[name] else "no-cache"
        kind = _TYPES.get(path.suffix, "text/plain; charset=utf-8")
        return web.FileResponse(path, headers={"Content-Type": kind, "Cache-Control": keep})


STATIC_FILES = web.AppKey("static_files", StaticFiles)


async def static_file(request: web.Request) -> web.StreamResponse:
    """`GET /static/{name}`."""
    files = request.config_dict[STATIC_FILES]
    return files.respond(request.match_info["name"], request.query.get("v", ""))


STATIC_ROUTES = (("GET", "/static/{name:.+}", static_file),)
