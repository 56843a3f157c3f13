import pytest

from appliance.clock import SystemClock
from appliance.commands.console import Console
from appliance.data_directory import DataDirectory
from appliance.store.signing_keys import list_key_ages
from appliance.tokens import Tokens


def keys(box, environment):
    console = Console(SystemClock(), Tokens(), {})
    with console.reading(DataDirectory(box.data), environment) as reader:
        return [
            (key.kid, key.retired_at is None, key.leaked_at is not None)
            for key in list_key_ages(reader)
        ]


@pytest.mark.parametrize(("flags", "leaked"), [((), False), (("--leaked",), True)])
def test_a_new_key_signs_in_the_environment_that_was_named_and_nowhere_else(box, flags, leaked):
    status = box("signing-key", "rotate", "--environment", "live", *flags)

    assert status == 0
    assert "key 2 signs from now on" in box.out
    assert ("older passes are refused" in box.out) is leaked
    assert keys(box, "live") == [(2, True, False), (1, False, leaked)]
    assert keys(box, "test") == [(1, True, False)]
