"""What to call a browser in a list of sessions: `Firefox, Windows`."""

_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def describe_device(user_agent: str) -> str:
    """Browser and system as far as the User-Agent tells; an empty text when it does not."""
    words = (_first(user_agent, _BROWSERS), _first(user_agent, _SYSTEMS))
    return ", ".join(word for word in words if word)


def _first(user_agent: str, known: tuple[tuple[str, str], ...]) -> str:
    return next((name for mark, name in known if mark in user_agent), "")
