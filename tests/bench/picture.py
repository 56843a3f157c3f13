"""The picture of growth: each request's median and 99th percentile over the size of the past."""

import io
import re
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_STYLE = {
    "svg.fonttype": "none",  # letters stay letters
    "svg.hashsalt": "growth",  # the same figures make the same bytes
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_COLUMNS = 3
_DIGITS = re.compile(r"(\d+\.\d\d)\d+")  # a hundredth of a point is more than is seen
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"


def draw(growth: Mapping[str, Mapping[str, Mapping[str, Any]]], fingerprint: str) -> str:
    """An SVG; `fingerprint` says in its description which figures it shows."""
    with mpl.rc_context(_STYLE):
        rows = -(-len(growth) // _COLUMNS)
        figure = Figure(figsize=(9, 2.4 * rows), layout="constrained", facecolor="white")
        places = figure.subplots(rows, _COLUMNS, squeeze=False)
        for place, (name, loads) in zip(places.flat, growth.items(), strict=False):
            sizes = [_power(int(rows)) for rows in loads]
            for of, mark in (("p50", "o-"), ("p99", "s--")):
                place.plot(sizes, [load[of] for load in loads.values()], mark, label=of)
            place.set_ylim(0, 1.15 * max(load["p99"] for load in loads.values()))
            place.locator_params(axis="y", nbins=4)
            place.set_title(name)
            place.set_ylabel("ms")
        for place in list(places.flat)[len(growth) :]:
            place.remove()
        places.flat[0].legend(frameon=False)
        figure.supxlabel("past reservations")
        told = io.StringIO()
        description = f"figures {fingerprint}"
        FigureCanvasSVG(figure).print_svg(
            told, metadata={"Date": None, "Creator": None, "Description": description}
        )
    return _DIGITS.sub(r"\1", told.getvalue())


def _power(rows: int) -> str:
    return "none" if rows == 0 else "10" + _RAISED[len(str(rows)) - 1]
