"""Pages: Jinja templates, escaped by default, in the visitor's language."""

from collections.abc import Callable
from pathlib import Path

import jinja2
from aiohttp import web

from appliance.i18n import Language, Languages, load_languages
from terminal_bridge.context import ENVIRONMENT
from web.static_files import STATIC_FILES, StaticFiles

_HERE = Path(__file__).parent
TEMPLATES = web.AppKey("templates", jinja2.Environment)
LANGUAGES = web.AppKey("languages", Languages)
_SOURCES = {
    "default-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


def content_policy(**sources: str) -> str:
    """A Content-Security-Policy: only this box's own files, in no frame, but for `sources`.

    `img_src="'self' data:"` changes or adds that one rule (docs/security.md, S11 and S16).
    """
    changed = {name.replace("_", "-"): value for name, value in sources.items()}
    return "; ".join(f"{name} {value}" for name, value in {**_SOURCES, **changed}.items())


def page_headers(**sources: str) -> dict[str, str]:
    """The headers of a page; `sources` as in `content_policy`."""
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": content_policy(**sources),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(self)",
        "Referrer-Policy": "same-origin",  # without one a form of ours would say `Origin: null`
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
    }


def prepare_pages(app: web.Application) -> None:
    """Give `app` what its pages need: templates, languages, static files."""
    files = StaticFiles(_HERE / "pictures", _HERE / "static")
    app[STATIC_FILES] = files
    app[LANGUAGES] = load_languages()
    app[TEMPLATES] = make_templates(files.url)


def make_templates(asset_url: Callable[[str], str] = "/static/{}".format) -> jinja2.Environment:
    """The templates: everything is escaped, and a name that nobody gave is an error.

    `asset_url` turns the name of a bundled file into its address.
    """
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["asset_url"] = asset_url
    return templates


def render(
    request: web.Request, template: str, language: Language, values: dict[str, object]
) -> str:
    """The page that `template` makes of `values`, for this request's environment."""
    page = request.config_dict[TEMPLATES].get_template(template)
    return page.render(
        values,
        language=language,
        languages=request.config_dict[LANGUAGES].all(),
        is_test=request[ENVIRONMENT].name == "test",
        _=language.gettext,
        ngettext=language.ngettext,
    )
