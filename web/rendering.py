"""Pages: Jinja templates, escaped by default, in the visitor's language."""

from collections.abc import Callable
from pathlib import Path

import jinja2
from aiohttp import web

from appliance.i18n import Language, Languages, load_languages
from terminal_bridge.context import ENVIRONMENT
from web.pass_images import PASS_IMAGES, PassImages
from web.static_files import STATIC_FILES, StaticFiles

_HERE = Path(__file__).parent
TEMPLATES = web.AppKey("templates", jinja2.Environment)
LANGUAGES = web.AppKey("languages", Languages)


def prepare_pages(app: web.Application) -> None:
    """Give `app` what its pages need: templates, languages, static files, QR codes."""
    files = StaticFiles(_HERE / "pictures", _HERE / "static")
    app[STATIC_FILES] = files
    app[LANGUAGES] = load_languages()
    app[PASS_IMAGES] = PassImages()
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
