"""The security headers of responses, such as Content-Security-Policy (docs/security.md, S16)."""

from collections.abc import Mapping

# Headers for all responses. A page replaces some of them with the values from `page_headers`.
COMMON_HEADERS: Mapping[str, str] = {
    "Server": "venuebox",  # hides the library's name and version
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

_SOURCES = {
    "default-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


def content_policy(**sources: str) -> str:
    """Return a Content-Security-Policy that allows only this box's files and forbids framing.

    `sources` adds or replaces directives. For example, `img_src="'self' data:"` sets `img-src`
    (docs/security.md, S11 and S16).
    """
    changed = {name.replace("_", "-"): value for name, value in sources.items()}
    return "; ".join(f"{name} {value}" for name, value in {**_SOURCES, **changed}.items())


def page_headers(**sources: str) -> dict[str, str]:
    """Return the headers for a page. `sources` is passed to `content_policy`."""
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": content_policy(**sources),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(self)",
        "Referrer-Policy": "same-origin",  # with `no-referrer`, forms would send `Origin: null`
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
    }
