"""Measure a duration on a busy machine."""

from collections.abc import Callable


def quickest(measure: Callable[[], float], enough: float, tries: int = 3) -> float:
    """Call `measure` up to `tries` times, until the result is below `enough`. Return the minimum.

    The machine may be busy during one call. Slow code is slow in every call.
    """
    took = measure()
    for _ in range(tries - 1):
        if took < enough:
            break
        took = min(took, measure())
    return took
