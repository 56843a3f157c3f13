"""Keep a run: its JSON in results/ and its table in docs/promises.md.

`python -m bench.publish` writes the table again from the JSON that is kept.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PROMISES = ROOT / "docs" / "promises.md"
_PEERS = {"× bare": "bare"}
_BEGIN, _END = "<!-- bench table: begin", "<!-- bench table: end -->"


def main() -> None:
    """From the latest result."""
    publish(latest())


def latest() -> Path:
    """The JSON of the run that is kept."""
    return max(RESULTS.glob("*.json"))


def write(folder: Path, result: Mapping[str, object]) -> Path:
    """One JSON document named by its date, in the place of all others of the folder.

    Four digits of each figure; no host name and no path of the machine in it.
    """
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    target = folder / f"{result['date']}.json"
    text = json.dumps(_plain(result), indent=1, ensure_ascii=False)
    target.write_text(text + "\n", "utf-8")
    return target


def publish(source: Path) -> None:
    """Write the table into docs/promises.md."""
    result = json.loads(source.read_text("utf-8"))
    PROMISES.write_text(with_table(PROMISES.read_text("utf-8"), table(result)), "utf-8")


def with_table(text: str, table: str) -> str:
    """The document with this table between its two marks."""
    before, begin, rest = text.partition(_BEGIN)
    mark, _, rest = rest.partition("\n")
    _, end, after = rest.partition(_END)
    return f"{before}{begin}{mark}\n{table}\n{end}{after}"


def table(result: Mapping[str, Any]) -> str:
    """The figures for people, in Markdown."""
    lines = [_machine(result), ""]
    heads = ("at 32 connections", "a second", "p50 ms", "p99 ms", "CPU µs", "MiB", *_PEERS)
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines[2:2] = ["```", *result["plain"], "```", ""]
    for name, load in result["loads"].items():
        beside = [result["ratios"].get(f"{name} / {peer}") for peer in _PEERS.values()]
        cells = [f"{load['rate']:,.0f}", f"{load['p50']:.2f}", f"{load['p99']:.2f}"]
        cells += [f"{load['cpu_us']:.0f}", f"{load['memory_mib']:.0f}"]
        cells += ["" if ratio is None else f"{ratio:.2f}" for ratio in beside]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", *_growth(result), "", *_others(result), "", "| asked of it | |", "|---|---|"]
    lines += [
        f"| {sentence} | {'holds' if held else '**missed**'} |"
        for sentence, held in result["targets"].items()
    ]
    return "\n".join(lines)


def _machine(result: Mapping[str, Any]) -> str:
    of = result["machine"]
    return (
        f"Run of {result['date']} (`bench/results/{result['date']}.json`): {of['cpu']}, "
        f"{of['cores']} cores, {of['memory_mib'] / 1024:.0f} GiB, disk {of['disk']} with "
        f"{of['filesystem']}, Linux {of['kernel']}, Python {of['python']}, SQLite {of['sqlite']}, "
        f"{result['rounds']} rounds, those of a bare peer "
        f"differed by {result['rounds_differ_by']:.2f} ×; the machine's load was "
        f"{result['load_before']:.1f} when it began."
        + (" **It was busy with other work: these figures say little.**" if _busy(result) else "")
    )


def _busy(result: Mapping[str, Any]) -> bool:
    return result["rounds_differ_by"] > 1.3 or result["load_before"] > 1.0


def _growth(result: Mapping[str, Any]) -> Iterator[str]:
    sizes = list(next(iter(result["growth"].values())))
    heads = " | ".join(f"{int(size):,}" for size in sizes)
    yield f"| past reservations: p50 ms / p99 ms | {heads} | CPU, last / first |"
    yield "|---|" + "---|" * (len(sizes) + 1)
    for name, loads in result["growth"].items():
        cells = " | ".join(f"{load['p50']:.2f} / {load['p99']:.2f}" for load in loads.values())
        ratio = result["growth_ratios"][f"{name}: CPU, oldest / empty"]
        yield f"| {name} | {cells} | {ratio:.2f} |"
    starts = " | ".join(f"{seconds:.2f} s" for seconds in result["growth_starts"].values())
    yield f"| start to first answer | {starts} | |"


def _others(result: Mapping[str, Any]) -> Iterator[str]:
    yield "| what else | figure |"
    yield "|---|---|"
    yield f"| start to first answer | {result['first_answer_s']:.2f} s |"
    rest = result["idle"]
    yield f"| idle for 10 s | {rest['cpu_ms']:.0f} ms of CPU, {rest['rss_mib']:.0f} MiB resident |"
    commits = result["durable_commits"]
    yield f"| one durable commit | p50 {commits['p50']:.2f} ms, p99 {commits['p99']:.2f} ms |"
    for what, (median, slowest) in {**result["board"], **result["door"]}.items():
        yield f"| {what} | median {median:.0f} ms, slowest {slowest:.0f} ms |"
    for what, found in result["binary"].items():
        yield f"| the one file: {what} | {found} |"
    for name, ratio in result.get("pretix", {}).items():
        yield f"| {name} | {ratio} |"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
