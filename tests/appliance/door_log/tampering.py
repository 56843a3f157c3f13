"""The lines of an exported door log, in the hands of somebody who changes them."""

import json

from appliance.model.spreadsheet import read_cells, write_cells

END = {"jsonl": b"\n", "csv": b"\r\n"}


class Lines:
    """The lines of a file, to be tampered with. Number 2 is the first scan."""

    def __init__(self, path, kind):
        self.path, self.kind = path, kind
        self.lines = path.read_bytes().split(END[kind])[:-1]

    def __getitem__(self, number):
        return self.lines[number - 1]

    def __setitem__(self, number, line):
        self.lines[number - 1] = line

    def save(self):
        self.path.write_bytes(b"".join(line + END[self.kind] for line in self.lines))

    def fields(self, number):
        if self.kind == "jsonl":
            return list(json.loads(self[number]))
        return read_cells(self[1].removeprefix(b"\xef\xbb\xbf"))

    def change(self, number, name):
        """Another value for one field of one line, of the same form where it has one."""
        if self.kind == "jsonl":
            values = json.loads(self[number])
            values[name] = another(values[name])
            self[number] = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
            return
        cells = read_cells(self[number])
        place = self.fields(number).index(name)
        cells[place] = str(another(cells[place] or None))
        self[number] = write_cells(cells)


def another(value):
    if isinstance(value, dict):
        return {**value, "environment": "test"}
    if isinstance(value, int):
        return value + 1
    if value is None:
        return "7"
    last = {"0": "1"}.get(value[-1], "0")
    return value[:-1] + last
