"""Follow the lines of an exported door log: their seals, their chain and their order."""

from collections.abc import Mapping
from typing import Any

from appliance.door_log.findings import MOST, Findings
from appliance.door_log.lines import Format, read_values, seal, take_apart
from appliance.door_log.order import Order
from appliance.store.scan_log import follow


class Following:
    """What a line may follow from. After a doubtful one it may be more than one thing.

    So that one change is one finding: after a changed line its neighbour is right if it
    follows from that line as it is, as it should be, or from the one before it.
    """

    def __init__(
        self, kind: Format, columns: list[str], types: Mapping[str, str], findings: Findings
    ) -> None:
        """`columns` of every line; `types` are those of the chained ones."""
        self._kind = kind
        self._columns = columns
        self._types = types
        self._chained = [name for name in columns if name in types]
        self._findings = findings
        self._order: Order | None = None
        self._seals: set[bytes] | None = None  # None: anything may come
        self._hashes: set[str | None] | None = None
        self.count = 0
        self.first_hash: str | None = None
        self.last_hash: str | None = None

    def begin(self, seals: set[bytes], first: int | None) -> None:
        """The first line must follow from one of `seals` and be the scan `first`, if known."""
        self._seals = seals
        self._order = None if first is None else Order(first, self._findings)

    def take(self, number: int, line: bytes) -> None:
        """Look at the line of that number."""
        self.count += 1
        text, stated = take_apart(self._kind, line)
        values = read_values(self._kind, text, self._columns, self._types)
        hash_ = None if values is None else self._hash_of(values)
        fits = self._seals is None or stated in {seal(before, text) for before in self._seals}
        after = self._seals_after(text, stated)
        if values is None or hash_ is None or hash_ != values["hash"]:
            self._doubt(number, values, hash_, after)
            return
        seq = values["seq"]
        self._order = self._order or Order(seq, self._findings)
        place = self._order.take(seq, number)
        if place == "late":
            self._seals = None if after is None or self._seals is None else self._seals | after
            return
        if place == "follows":
            self._judge(number, values, fits=fits)
        self._seals, self._hashes = after, {values["hash"]}
        self.first_hash = self.first_hash or values["hash"]
        self.last_hash = values["hash"]

    @property
    def is_ruin(self) -> bool:
        """Whether so much is wrong that looking on is of no use."""
        return self._findings.full or (self._order is not None and self._order.gaps >= MOST)

    def ends_with(self, last_seal: str) -> bool:
        """Whether the last line may have been sealed so."""
        return self._seals is None or last_seal in {known.hex() for known in self._seals}

    def end(self, last: int | None, number: int) -> None:
        """No line follows; `last` should have been the last scan."""
        if self._order is None and last is not None:
            self._findings.add(number, "every scan was removed")
        elif self._order is not None:
            self._order.end(last, number)

    def _judge(self, number: int, values: dict[str, Any], *, fits: bool) -> None:
        if not fits:
            self._findings.add(number, f"scan {values['seq']} was changed")
        elif self._hashes is not None and values["previous_hash"] not in self._hashes:
            self._findings.add(number, f"scan {values['seq']} does not follow from the one before")

    def _doubt(
        self,
        number: int,
        values: dict[str, Any] | None,
        hash_: str | None,
        after: set[bytes] | None,
    ) -> None:
        named = values["seq"] if values is not None else None
        which = f"scan {named}" if isinstance(named, int) else "this line"
        self._findings.add(number, f"{which} was changed or added")
        if self._order is not None:
            self._order.doubt()
        self._seals = None if after is None or self._seals is None else self._seals | after
        if values is None or self._hashes is None:
            self._hashes = None
        else:
            self._hashes |= {values["hash"], hash_}

    def _seals_after(self, text: bytes, stated: bytes | None) -> set[bytes] | None:
        if stated is None or self._seals is None:
            return None if stated is None else {stated}
        return {stated, *(seal(before, text) for before in self._seals)}

    def _hash_of(self, values: dict[str, Any]) -> str | None:
        """What the hash should be. Where what came before is gone, it is taken at its word."""
        if not isinstance(values["seq"], int):
            return None
        previous = values["previous_hash"]
        if previous is None:
            return str(values["hash"])
        try:
            before = bytes.fromhex(previous)
        except (TypeError, ValueError):
            return None
        return follow(before, [values[name] for name in self._chained]).hex()
