"""Jinja templates, static files and page headers."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import jinja2
from aiohttp import web

from appliance.core.email_addresses import mailto
from appliance.core.i18n import Language, Languages, load_languages
from appliance.core.phone_numbers import spell_number
from appliance.http.request import ENVIRONMENT
from appliance.http.security_headers import content_policy

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".tgz": "application/gzip",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".whl": "application/zip",
}
_KEEP = "public, max-age=31536000, immutable"


class StaticFiles:
    """The static files in the given folders. Files that are added later are not found."""

    def __init__(self, *folders: Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): (
                path,
                hashlib.sha256(path.read_bytes()).hexdigest()[:16],
            )
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }

    def url(self, name: str) -> str:
        """Return a file's URL, which changes when the file's content changes."""
        if name not in self._files:
            return f"/static/{name}"
        return f"/static/{name}?v={self._files[name][1]}"

    def names(self, folder: str) -> list[str]:
        """Return the names of the files below `folder`, sorted."""
        return [name for name in self._files if name.startswith(f"{folder}/")]

    @lru_cache(2)  # noqa: B019 - there is one object, which lives as long as the process
    def inline(self, name: str) -> tuple["Html", str]:
        """Return a file's text to write into a page, and its source for the page's policy.

        Return empty texts if there is no such file.
        """
        if name not in self._files:
            return Html(), ""
        text = self._files[name][0].read_bytes()
        digest = base64.b64encode(hashlib.sha256(text).digest()).decode()
        return Html(text.decode()), f"'sha256-{digest}'"

    def respond(self, name: str, version: str) -> web.StreamResponse:
        """Return the file, cacheable for a year if `version` matches.

        Raises HTTPNotFound if there is no such file.
        """
        if name not in self._files:
            raise web.HTTPNotFound
        path, current = self._files[name]
        caching = _KEEP if version == current else "no-cache"
        kind = _TYPES.get(path.suffix, "text/plain; charset=utf-8")
        return web.FileResponse(path, headers={"Content-Type": kind, "Cache-Control": caching})


STATIC_FILES = web.AppKey("static_files", StaticFiles)


async def static_file(request: web.Request) -> web.StreamResponse:
    """`GET /static/{name}`: return a static file."""
    files = request.config_dict[STATIC_FILES]
    return files.respond(request.match_info["name"], request.query.get("v", ""))


STATIC_ROUTES = (("GET", "/static/{name:.+}", static_file),)


_HERE = Path(__file__).parent
TEMPLATES = web.AppKey("templates", jinja2.Environment)
LANGUAGES = web.AppKey("languages", Languages)


def prepare_pages(app: web.Application) -> None:
    """Add templates, languages and static files to `app`."""
    files = StaticFiles(_HERE / "pictures", _HERE / "static")
    app[STATIC_FILES] = files
    app[LANGUAGES] = load_languages()
    app[TEMPLATES] = make_templates(files.url)


class Html(str):
    """Text that is HTML already, so templates do not escape it."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def make_templates(asset_url: Callable[[str], str] = "/static/{}".format) -> jinja2.Environment:
    """Return the Jinja environment. Its templates escape values and reject undefined names.

    `asset_url` returns a static file's URL by name.
    """
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["asset_url"] = asset_url
    templates.filters |= {"mailto": mailto, "spell_number": spell_number}
    return templates


def render(
    request: web.Request, template: str, language: Language, values: dict[str, object]
) -> str:
    """Return `template` rendered with `values` and the request's environment."""
    page = request.config_dict[TEMPLATES].get_template(template)
    return page.render(
        values,
        language=language,
        languages=request.config_dict[LANGUAGES].all(),
        is_test=request[ENVIRONMENT].name == "test",
        _=language.gettext,
        ngettext=language.ngettext,
    )


def public_page(
    request: web.Request,
    template: str,
    values: dict[str, object],
    language: Language | None = None,
    **sources: str,
) -> web.Response:
    """Return a page that loads only this box's own files. The default language is English.

    `sources` adds or replaces directives of the Content-Security-Policy, as in `content_policy`.
    """
    own = {"default_src": "'none'", "form_action": "'none'"}
    own |= dict.fromkeys(("script_src", "style_src", "img_src", "connect_src"), "'self'")
    policy = content_policy(**{**own, **sources})
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": policy,
        "Vary": "Accept, Accept-Language",
    }
    language = language or request.config_dict[LANGUAGES].get("en")
    return html_answer(request, template, language, values, headers)


def html_answer(
    request: web.Request,
    template: str,
    language: Language,
    values: dict[str, object],
    headers: Mapping[str, str],
) -> web.Response:
    """Return a response with the rendered template, `headers` and Content-Language."""
    return web.Response(
        text=render(request, template, language, values),
        content_type="text/html",
        charset="utf-8",
        headers={**headers, "Content-Language": language.code},
    )
