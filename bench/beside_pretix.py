"""`make pretix`: a scan at the box beside a check-in at pretix with PostgreSQL and Redis.

Sets pretix up in directories of its own (its Python stays in build/, the rest goes), on
loopback and a socket, runs both in turn and ends everything it started. Takes ten minutes the
first time. PostgreSQL and Redis are Debian's, pretix is PyPI's.
"""

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import box, peers, publish
from bench.children import BenchError, Child, Children, free_port, wait_until_answers
from bench.load import Load, faster, median_of, require_wrk, run_load
from bench.progress import Progress
from bench.rounds import fresh_copy, warm_and_measure

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[1]
PYTHON = ROOT / "build" / "pretix" / "bin" / "python"
PACKAGES = ("pretix==2026.8.0", "gunicorn==27.0.1", "psycopg2-binary==2.9.13")
TICKETS = 20_000
DOORS = 8  # connections
ROUNDS, SECONDS, WARM_UP_SECONDS = 3, 6, 15
REDEEM = "/api/v1/organizers/bench/checkinrpc/redeem/"
CONFIGURATION = """[pretix]
url=http://127.0.0.1:{port}
datadir={folder}/data
registration=off
[django]
secret=bench-only
[database]
backend=postgresql
name=pretix
user={user}
host={folder}/socket
[redis]
location=redis://127.0.0.1:{redis}/0
sessions=true
[mail]
host=127.0.0.1
port=9
"""


@dataclass
class Pretix:
    """What runs it, and how it is asked."""

    folder: Path
    port: int
    redis: int
    environment: dict[str, str]
    token: str = ""
    door: str = ""

    def load(self) -> dict[str, str]:
        """The environment of a load."""
        return {"BENCH_AUTHORIZATION": f"Token {self.token}", "BENCH_PATH": REDEEM,
                "BENCH_LIST_ID": self.door}  # fmt: skip


def main() -> int:
    """Sets up, measures, prints; 1 when something was not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publish", action="store_true", help="add the figures to those kept")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="venuebox-pretix-", dir="/var/tmp"))
    progress = Progress()
    try:
        require_wrk()
        _install(progress)
        with Children(folder).all_ended() as children:
            figures = _measure(children, folder, progress)
    except (BenchError, subprocess.SubprocessError, KeyboardInterrupt) as trouble:
        print(f"\nbench: {str(trouble) or 'interrupted'}", file=sys.stderr, flush=True)
        return 1
    finally:
        shutil.rmtree(folder)
    for name, figure in figures.items():
        print(f"{name}: {figure}")
    if options.publish:
        result = json.loads(publish.latest().read_text("utf-8"))
        publish.publish(publish.write(publish.RESULTS, result | {"pretix": figures}))
    return 0


def _install(progress: Progress) -> None:
    stamp = PYTHON.parents[1] / ".installed"
    if stamp.exists() and stamp.read_text() == repr(PACKAGES):
        return
    progress.say("installing pretix in build/pretix: a few minutes")
    subprocess.run([sys.executable, "-m", "venv", "--clear", PYTHON.parents[1]], check=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([PYTHON, "-m", "pip", "install", *quiet, *PACKAGES], check=True, timeout=1500)
    stamp.write_text(repr(PACKAGES))


def _measure(children: Children, folder: Path, progress: Progress) -> dict[str, str]:
    progress.say("preparing the box")
    home = folder / "box-home"
    home.mkdir()
    prepared = box.prepare(children, home, peers.serve_receiver(children))
    pretix = _prepare(children, folder / "pretix", progress)
    progress.say("starting pretix, and waiting until each worker has answered something")
    peer = _serve(children, pretix)
    warm = run_load(peer, "pretix.lua", WARM_UP_SECONDS, pretix.load(), 0, DOORS)
    reached, answered = warm.reached, warm.requests
    ours: list[Load] = []
    theirs: list[Load] = []
    for number in range(ROUNDS):
        progress.say(f"round {number + 1} of {ROUNDS}, {DOORS} connections")
        data = fresh_copy(prepared.folder, home / "round")
        child = box.serve(children, data, prepared)
        scan = {**prepared.as_terminal(), "BENCH_PATH": "/terminal/v1/scans"}
        warm, load = warm_and_measure(child, "scan.lua", SECONDS, scan, connections=DOORS)
        children.stop(child)
        box.check_scans(data, prepared.plan.tonight, warm.requests + load.requests, 2)
        progress.load("the box: scan", load)
        ours.append(load)
        load = run_load(peer, "pretix.lua", SECONDS, pretix.load(), reached, DOORS)
        progress.load("pretix: check-in (CPU of its parent alone)", load)
        theirs.append(load)
        reached, answered = load.reached, answered + load.requests
    _check(pretix, answered, ROUNDS + 1)
    a, b = median_of(ours), median_of(theirs)
    return {
        f"pretix {PACKAGES[0].partition('==')[2]} with PostgreSQL, check-in, {DOORS} connections":
            f"{b.rate:,.0f}/s, p50 {b.p50:.1f} ms, p99 {b.p99:.1f} ms",
        f"the box in the same run, scan, {DOORS} connections":
            f"{a.rate:,.0f}/s, p50 {a.p50:.1f} ms, p99 {a.p99:.1f} ms",
        "scans for each check-in of pretix": f"{faster(ours, theirs):.1f}",
    }  # fmt: skip


def _prepare(children: Children, folder: Path, progress: Progress) -> Pretix:
    """PostgreSQL, Redis, pretix's tables and its tickets."""
    for name in ("socket", "data"):
        (folder / name).mkdir(parents=True)
    user, become = _postgres_user(folder)
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/nowhere"))
    redis = Path("/usr/bin/redis-check-rdb")  # the same program: its name says what it is to do
    for program in (programs / "initdb", redis):
        if not program.exists():
            raise BenchError(f"{program.name} is missing: apt-get install postgresql redis-tools")
    progress.say("starting PostgreSQL and Redis")
    cluster = folder / "cluster"
    _run([*become, str(programs / "initdb"), "-D", str(cluster), "-A", "trust", "-E", "UTF8"], 120)
    socket = folder / "socket"
    argv = [*become, str(programs / "postgres"), "-D", str(cluster), "-k", str(socket)]
    children.start("postgres", [*argv, "-c", "listen_addresses="], 0)
    (folder / "redis-server").symlink_to(redis)
    pretix = Pretix(folder, free_port(), free_port(), {})
    argv = [str(folder / "redis-server"), "--bind", "127.0.0.1", "--port", str(pretix.redis)]
    children.start("redis", [*argv, "--dir", str(folder / "data"), "--save", ""], pretix.redis)
    created = [str(programs / "createdb"), "-h", str(socket), "-U", user, "pretix"]
    for _ in itertools.repeat(None, 100):
        if subprocess.run(created, capture_output=True, check=False).returncode == 0:
            break
        subprocess.run(["sleep", "0.1"], check=True)
    configuration = folder / "pretix.cfg"
    configuration.write_text(
        CONFIGURATION.format(port=pretix.port, folder=folder, user=user, redis=pretix.redis)
    )
    pretix.environment = {"PRETIX_CONFIG_FILE": str(configuration), "HOME": str(folder)}
    progress.say("making pretix's tables: a minute")
    _run([str(PYTHON), "-m", "pretix", "migrate", "--skip-checks"], 900, pretix)
    progress.say(f"writing {TICKETS:,} tickets")
    said = _run([str(PYTHON), str(HERE / "tickets_of_pretix.py"), str(TICKETS)], 300, pretix)
    world = json.loads(said.splitlines()[-1])
    pretix.token, pretix.door = world["token"], str(world["list"])
    return pretix


def _postgres_user(folder: Path) -> tuple[str, list[str]]:
    """Who runs PostgreSQL, which refuses to be root, and what makes a command theirs."""
    if os.getuid():
        return Path.home().owner(), []
    for place in (folder, folder / "socket"):
        shutil.chown(place, "postgres", "postgres")
    folder.parent.chmod(0o711)
    same = ["--reuid=postgres", "--regid=postgres", "--init-groups"]
    return "postgres", ["setpriv", *same, "env", "-C", str(folder)]


def _serve(children: Children, pretix: Pretix) -> Child:
    """gunicorn with two workers for each core and one more, as its documentation says."""
    workers = 2 * (os.cpu_count() or 1) + 1
    argv = [str(PYTHON), "-m", "gunicorn", "pretix.wsgi", "--workers", str(workers),
            "--bind", f"127.0.0.1:{pretix.port}", "--log-level", "error"]  # fmt: skip
    child = children.start("pretix", argv, pretix.port, pretix.environment)
    wait_until_answers(
        child, "/api/v1/organizers/", {"Authorization": f"Token {pretix.token}"}, patience=120
    )
    return child


def _check(pretix: Pretix, answered: int, loads: int) -> None:
    """Every check-in that was answered is a row, and no ticket was used up twice."""
    argv = ["psql", "-h", str(pretix.folder / "socket"), "-U", "postgres", "-At", "pretix"]
    said = _run([*argv, "-c", "SELECT count(*) FROM pretixbase_checkin WHERE successful"], 60)
    if not answered <= int(said) <= answered + loads * DOORS:
        raise BenchError(f"pretix acknowledged {answered} check-ins and holds {said.strip()}")


def _run(argv: list[str], patience: int, pretix: Pretix | None = None) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=patience,
        env={**os.environ, **(pretix.environment if pretix else {})},
    )  # fmt: skip
    if done.returncode:
        raise BenchError(f"{Path(argv[0]).name} failed: {done.stderr.strip()[-600:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
