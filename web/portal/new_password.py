"""What is asked of a new password, in the visitor's language (docs/security.md, S7)."""

from appliance.i18n import Language
from appliance.model.guessable import is_guessable
from appliance.model.staff import PASSWORD_MAX, PASSWORD_MIN


def password_problem(password: str, names: tuple[str, ...], language: Language) -> str | None:
    """What is wrong with it; None when it will do. `names` are the person's and the venue's."""
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        return language.gettext(
            "Please choose %(shortest)s to %(longest)s characters.",
            shortest=PASSWORD_MIN,
            longest=PASSWORD_MAX,
        )
    if is_guessable(password, names):
        return language.gettext(
            "That one is among the first that anyone would try. Please choose another."
        )
    return None
