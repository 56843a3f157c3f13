"""How long something takes on a machine that others use, too."""

from collections.abc import Callable


def quickest(measure: Callable[[], float], enough: float, tries: int = 3) -> float:
    """The seconds that `measure` tells: of some tries the fewest, once they are few enough.

    A machine may stand still during one of them; what is slow by itself is slow in each.
    """
    took = measure()
    for _ in range(tries - 1):
        if took < enough:
            break
        took = min(took, measure())
    return took
