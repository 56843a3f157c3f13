"""What `make soak` does, step by step: what is tried, by which command, and how long at most."""

import sys
from dataclasses import dataclass

PYTHON = sys.executable
PYTEST = (PYTHON, "-m", "pytest", "-v", "-s", "--tb=short", "-p", "no:cacheprovider", "-n", "0")


@dataclass(frozen=True)
class Step:
    """One row of the table. `beside`: it sleeps, so others may run meanwhile."""

    name: str
    tries: str
    command: tuple[str, ...]
    seconds: float  # at most; then it is ended, which counts as a failure
    beside: bool = False


def pytest_step(name, tries, seconds, *paths, beside=False):
    """A step that runs tests in full."""
    return Step(name, tries, (*PYTEST, *paths), seconds, beside)


def program_step(name, tries, seconds, module, *argv):
    """A step that is a program of its own."""
    return Step(name, tries, (PYTHON, "-m", module, *argv), seconds)
