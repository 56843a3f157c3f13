"""The word of each verdict, as the door itself says it."""

from appliance.i18n import Language
from web.door.page import door_words


def result_words(language: Language) -> dict[str, str]:
    """The words by the names of the verdicts."""
    words = door_words(language)
    return {
        name.removeprefix("word."): word for name, word in words.items() if name.startswith("word.")
    }
