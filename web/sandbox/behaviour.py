"""How an echo receiver answers: what its partner switched on to see how the box takes it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from appliance.errors import ValidationError

MODES = ("normal", "slow", "fail", "timeout", "close")
SECONDS_MAX = 30
_STATUS_MIN, _STATUS_MAX = 300, 599


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one mode does.

    `normal`: 204 at once. `slow`: 204 after `seconds`. `fail`: `status`. `timeout`: no answer.
    `close`: it hangs up.
    """

    mode: str = "normal"
    seconds: float = 5.0
    status: int = 500


def parse_behaviour(body: Mapping[str, Any]) -> Behaviour:
    """The behaviour that `body` describes; ValidationError names the member that is wrong."""
    mode = body.get("mode")
    if mode not in MODES:
        raise _refused("mode", f"parmi {', '.join(MODES)}", f"one of {', '.join(MODES)}")
    usual = Behaviour()
    seconds, status = body.get("seconds", usual.seconds), body.get("status", usual.status)
    if not _is_number(seconds) or not 0 <= seconds <= SECONDS_MAX:
        raise _refused("seconds", f"de 0 à {SECONDS_MAX}", f"0 to {SECONDS_MAX}")
    if type(status) is not int or not _STATUS_MIN <= status <= _STATUS_MAX:
        rule = (f"de {_STATUS_MIN} à {_STATUS_MAX}", f"{_STATUS_MIN} to {_STATUS_MAX}")
        raise _refused("status", *rule)
    return Behaviour(mode, float(seconds), status)


def _is_number(value: object) -> bool:
    return type(value) in {int, float} and math.isfinite(value)  # type: ignore[arg-type]


def _refused(field: str, rule_fr: str, rule: str) -> ValidationError:
    return ValidationError(field=field, rule_fr=f"{field} : {rule_fr}.", rule=f"{field}: {rule}.")
