"""Split an exported CSV into cells as the spreadsheet programs of several countries do."""

import csv
import io
import re
import unicodedata

_DROPPED = {"Cc", "Cf", "Zs", "Zl", "Zp"}


def rows_of(text):
    """Return the rows as the file intends them."""
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=";"))


def formulas_in(text):
    """Return the cells that a spreadsheet could run as formulas, for all separators and quotes."""
    lines = text.removeprefix("\ufeff").splitlines()
    cells = [cell for line in lines for cell in re.split("[;,\t]", line)]
    for separator in ";,\t":
        cells += [cell for row in csv.reader(lines, delimiter=separator) for cell in row]
    return [cell for cell in cells if _runs(cell)]


def _runs(cell):
    seen = [s for s in cell if unicodedata.category(s) not in _DROPPED and s != '"']
    return bool(seen) and unicodedata.normalize("NFKC", seen[0])[0] in "=+-@"
