"""The tiers of the tests: the marks of each folder, and the summary at the end of a run.

`make test` runs the default tier, `make test-all` everything, and `make soak` the long forms.
"""

import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent
_FOLDERS = {"browser": "browser", "journeys": "process"}
_LEFT_OUT = {
    "smoke": "browser smokes, because there is no Chromium at {chromium}"
             " (CHROMIUM=/path/to/it says where)",
    "browser": "tests in a browser",
    "network": "tests in a network or on a disk of their own",
    "process": "tests that start processes",
    "slow": "tests that take more than a second",
    "": "tests that were not asked for",
}  # fmt: skip
# About how many seconds a test of that kind takes; one marked `slow(30)` takes about 30.
_SECONDS = {"slow": 5.0, "browser": 3.0, "process": 2.0}
_MORE = "make test-all runs them too, make soak the long forms."
_left_out: Counter[str] = Counter()


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Mark and sort the tests. Deselect smoke tests if there is no Chromium.

    The slowest files come first, so that no worker ends long after the others.
    """
    missing, seconds = [], Counter[Path]()
    for item in items:
        folder = item.path.relative_to(_ROOT).parts[0]
        if item.get_closest_marker("smoke"):
            if not Path(_chromium()).exists():
                missing.append(item)
        elif folder in _FOLDERS:
            item.add_marker(_FOLDERS[folder])
        seconds[item.path] += _estimate(item)
    if missing and config.option.markexpr:
        items[:] = [item for item in items if item not in missing]
        config.hook.pytest_deselected(items=missing)
    if not getattr(config.option, "loadscopereorder", True):
        items.sort(key=lambda item: -seconds[item.path])


def _estimate(item: pytest.Item) -> float:
    for kind, seconds in _SECONDS.items():
        if marker := item.get_closest_marker(kind):
            return float(marker.args[0] if marker.args else seconds)
    return 0.0


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count each deselected test under the first mark that fits."""
    for item in items:
        _left_out[next((kind for kind in _LEFT_OUT if item.get_closest_marker(kind)), "")] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report the number of deselected tests to the parent process, if there is one."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = dict(_left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Use the counts of one worker, because each worker collects all tests."""
    _left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}) if not _left_out else {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests by folder, the slowest ones, and how to run the deselected ones."""
    ran: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    slowest: list[tuple[float, str]] = []
    for outcome in ("", "passed", "failed", "error"):  # "": passed setups and teardowns
        for report in terminalreporter.stats.get(outcome, []):
            if not isinstance(report, pytest.TestReport):
                continue  # a file that could not be collected
            area = "/".join(report.nodeid.split("::")[0].split("/")[:-1][:3])
            ran[area] += report.when == "call"
            seconds[area] += report.duration
            slowest.append((report.duration, report.nodeid))
    if sum(ran.values()) < 100:
        return
    write = terminalreporter.write_line
    write("")
    for area in sorted(ran):
        write(f"{ran[area]:6} tests  {seconds[area]:7.1f} s  {area}")
    write("")
    write("slowest: " + "\n         ".join(f"{s:5.1f} s  {n}" for s, n in sorted(slowest)[:-6:-1]))
    for kind, reason in _LEFT_OUT.items():
        if kind == "smoke" and Path(_chromium()).exists():
            continue  # `make rest` leaves them to `make test`
        if _left_out[kind]:
            write(f"left out: {_left_out[kind]} {reason.format(chromium=_chromium())}")
    if _left_out:
        write(_MORE)


def _chromium() -> str:
    return os.environ.get("CHROMIUM", "/usr/bin/chromium")
