"""Eight doors: how long a decision takes on the server, beside one durable commit.

`python -m bench.doors` prints both, measured in one run on one disk:

- a decision, from its request's arrival in our handler to the answer after the COMMIT
  (`timed_box.py`): with terminals that scan 25 times a second each, whatever the box does, and
  with terminals that scan again as soon as they are answered;
- a commit: the COMMIT alone of what one scan writes, by itself, on a copy of the same box; as
  often as the paced doors make one, for a machine that rests in between is slower to act, and one
  after the other; before and after the doors.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring, Tokens, hash_token
from appliance.database.connection import Transaction, open_connection
from appliance.database.integrity import session
from appliance.door.check_in import check_in
from appliance.door.scan import Scan, look_up_code
from appliance.door.terminals import find_by_token
from appliance.outbox import EVENT_TYPES
from appliance.webhooks.endpoints import register_endpoint
from bench.children import BenchError, Children, free_port, wait_until_answers
from bench.doors_client import Terminals
from tests.app.terminal_bridge.many_doors import Crowd, expect
from tests.journeys.box_process import ROOMY, clean_environ, found_box

HERE = Path(__file__).parent
EACH_PER_SECOND = 5.0  # of one terminal; the busiest of doors lets one guest in each second
WARM_UP = 400
COMMITS = 1000
MOST = 5.0  # times one durable commit


@dataclass(frozen=True)
class Spread:
    """Milliseconds."""

    p50: float
    p99: float
    longest: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        """Of times in seconds."""
        found = sorted(each * 1000 for each in seconds)
        return cls(found[len(found) // 2], found[len(found) * 99 // 100], found[-1])

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f}, p99 {self.p99:.2f}, longest {self.longest:.2f} ms"


@dataclass(frozen=True)
class Doors:
    """What one load showed; `cpu_us` is the box's own for each scan, all it did beside included."""

    rate: float
    decision: Spread
    client: Spread
    cpu_us: float


def main() -> int:
    """Prints the figures; status 1 when an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scans", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=data))
    try:
        measure(folder, options.scans, options.seed)
    except BenchError as trouble:
        print(f"\nbench: {trouble}", file=sys.stderr, flush=True)
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


def measure(folder: Path, scans: int, seed: int) -> tuple[dict[str, Any], list[tuple[str, bool]]]:
    """The figures, and the targets that were held or missed."""
    with Children(folder).all_ended() as children:
        receiver = free_port()
        script = str(HERE / "receiver.py")
        hook = children.start("receiver", [sys.executable, script, str(receiver)], receiver)
        wait_until_answers(hook, "/count")
        crowd = expect(found_box(folder, tables=24).data, scans + WARM_UP, seed)
        _subscribe(crowd.data, receiver)
        texts = [party.text for party in crowd.parties]
        random.Random(seed).shuffle(texts)
        alone = [_commits(crowd, folder / "before", texts, random.Random(seed))]

        def paced(terminals: Terminals, some: list[str], name: str) -> None:
            terminals.paced(some, EACH_PER_SECOND, random.Random(seed), name)

        loads = {
            name: _load(children, crowd, folder / name, texts, receiver, run)
            for name, run in (("paced", paced), ("saturated", Terminals.saturated))
        }
        alone.append(_commits(crowd, folder / "after", texts, random.Random(seed)))
    commits = {name: Spread.of([each for times in alone for each in times[name]]) for name in loads}
    held = []
    for name, load in loads.items():
        commit = commits[name]
        print(f"one durable commit of what a scan writes, {name}: {commit}", flush=True)
        print(
            f"8 doors, {name}, {load.rate:,.0f} scans/s: decision {load.decision}; as the client "
            f"saw it {load.client}; {load.cpu_us:.0f} µs of CPU a scan",
            flush=True,
        )
        times = load.decision.p99 / commit.p99
        sentence = (
            f"8 doors, {name}: p99 of a decision {load.decision.p99:.2f} ms, {times:.1f} × that of "
            f"one durable commit as often ({commit.p99:.2f} ms), at most {MOST:.0f}; "
            f"{load.decision.p99 / commit.p50:.1f} × its median ({commit.p50:.2f} ms)"
        )
        held.append((sentence, times <= MOST))
    for sentence, holds in held:
        print(f"{'holds ' if holds else 'MISSED'}  {sentence}", flush=True)
    figures = {name: asdict(load) for name, load in loads.items()}
    spreads = {f"commit, {name}": asdict(commit) for name, commit in commits.items()}
    return {**spreads, **figures}, held


def _commits(
    crowd: Crowd, copy: Path, texts: list[str], chance: random.Random
) -> dict[str, list[float]]:
    """The times of commits alone: as often as each load makes one."""
    often = len(crowd.terminals) * EACH_PER_SECOND
    return {
        "paced": commit_times(crowd, copy, texts, lambda: time.sleep(chance.expovariate(often))),
        "saturated": commit_times(crowd, copy, texts, lambda: None),
    }


def commit_times(
    crowd: Crowd, copy: Path, texts: list[str], rest: Callable[[], None]
) -> list[float]:
    """Seconds of each COMMIT of one scan alone, with a rest before it, on a copy of the box."""
    shutil.copytree(crowd.data, copy)
    keyring = Keyring(DataDirectory(copy).master_key(), "live")
    clock, tokens, zones = SystemClock(), Tokens(), newest_zone_database()
    connection = open_connection(copy / "live.db")
    # A checkpoint would be inside of one commit in hundreds.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    seconds = []
    for number, text in enumerate(texts[:COMMITS]):
        rest()
        connection.execute("BEGIN IMMEDIATE")
        tx = Transaction(connection, clock, zones, tokens)
        terminal = find_by_token(tx, hash_token(crowd.terminals[number % 8].token))
        assert terminal is not None
        reading = look_up_code(tx, keyring, "live", text, by_name=False)
        decided = check_in(tx, terminal, Scan(id=f"s{number}", reading=reading), 1440)
        tx.keep()
        begun = time.perf_counter()
        connection.execute("COMMIT")
        seconds.append(time.perf_counter() - begun)
        if decided.verdict.result != "checked_in":
            raise BenchError(f"a fresh pass was answered {decided.verdict.result}")
    connection.close()
    shutil.rmtree(copy)
    return seconds[COMMITS // 10 :]


def _load(
    children: Children,
    crowd: Crowd,
    copy: Path,
    texts: list[str],
    receiver: int,
    run: Callable[[Terminals, list[str], str], None],
) -> Doors:
    """One load on a copy of the box, with eight listeners, after a short one to warm up."""
    shutil.copytree(crowd.data, copy)
    times, port = copy.with_suffix(".times"), free_port()
    argv = [sys.executable, "-m", "bench.timed_box", str(times), "serve", "--data",
            str(copy), "--host", "127.0.0.1", "--port", str(port)]  # fmt: skip
    child = children.start("box", argv, port, clean_environ(ROOMY | _allowing(receiver)))
    token = crowd.terminals[0].token
    wait_until_answers(child, "/terminal/v1/me", {"Authorization": f"Bearer {token}"})

    terminals = Terminals(port, [terminal.token for terminal in crowd.terminals])
    with terminals.listening():
        run(terminals, texts[:WARM_UP], "warm")
        terminals.seconds.clear()
        cpu, begun = child.cpu_seconds(), time.perf_counter()
        run(terminals, texts[WARM_UP:], "scan")
        took, used = time.perf_counter() - begun, child.cpu_seconds() - cpu
    children.stop(child)
    if terminals.wrong:
        raise BenchError(
            f"{len(terminals.wrong)} fresh passes were not let in: {terminals.wrong[0]}"
        )
    scans = len(texts) - WARM_UP
    pairs = [line.split() for line in times.read_text().splitlines()]
    decisions = [float(lasted) for at, lasted in pairs if float(at) >= begun]
    if len(decisions) != scans:
        raise BenchError(f"{scans} scans were answered, {len(decisions)} were decided")
    shutil.rmtree(copy)
    return Doors(
        scans / took, Spread.of(decisions), Spread.of(terminals.seconds), 1e6 * used / scans
    )


def _subscribe(data: Path, port: int) -> None:
    """A partner hears of every arrival, as in a real house."""
    keyring = Keyring(DataDirectory(data).master_key(), "live")
    with session(data / "live.db", SystemClock(), Tokens(), newest_zone_database()) as tx:
        register_endpoint(tx, keyring, f"http://127.0.0.1:{port}/hook", EVENT_TYPES)


def _allowing(port: int) -> dict[str, str]:
    return {
        "VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": f"127.0.0.1:{port}",
        "VENUEBOX_WEBHOOKS_ALLOW_HTTP": "true",
    }


if __name__ == "__main__":
    sys.exit(main())
