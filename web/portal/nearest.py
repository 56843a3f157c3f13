"""The page that a form belongs to: an address that a browser may open again."""

from aiohttp import web

_SAFE = frozenset({"GET", "HEAD"})
_HOME = "/portal"


def nearest_page(request: web.Request) -> str:
    """The request's own path; of a form's path, the nearest one above it that is a page."""
    return request.path if request.method in _SAFE else page_above(request) or _HOME


def page_above(request: web.Request) -> str:
    """The nearest address at or above the request's that is a page; empty where there is none."""
    path = request.path
    while path and not _is_page(request, path):
        path = path.rpartition("/")[0]
    return path


def same_page(request: web.Request) -> str:
    """The address that shows the same again: with what it asks for, but for what is said once."""
    if request.method not in _SAFE:
        return nearest_page(request)
    return str(request.rel_url.without_query_params("note", "lang"))


def _is_page(request: web.Request, path: str) -> bool:
    for route in request.app.router.routes():
        if route.method != "GET" or route.resource is None:
            continue
        info = route.resource.get_info()
        pattern = info.get("pattern")
        if info.get("path") == path or (pattern is not None and pattern.fullmatch(path)):
            return True
    return False
