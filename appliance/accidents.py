"""Accidents in the log: where in the code they happened, never what was in their hands."""

import logging
import traceback

log = logging.getLogger(__name__)


def log_accident(what: str, error: BaseException) -> None:
    """Note where in the code `what` failed.

    The exception's text may hold what a guest wrote, or a key; its place in the code does not.
    """
    place = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    log.error("%s failed: %s\n%s", what, type(error).__name__, place)
