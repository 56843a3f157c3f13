"""Text as names are compared, by the vectors that the browser is held to as well."""

import json
from pathlib import Path

import pytest

from appliance.model.folded import fold, western_digits

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "folded.json").read_text("utf-8"))


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["note"])
def test_the_box_folds_as_the_vectors_say_and_once_is_enough(vector):
    assert fold(vector["text"]) == vector["folded"]
    assert fold(vector["folded"]) == vector["folded"]


def test_digits_alone_are_turned_and_letters_stay():
    assert western_digits("٧K۲M é") == "7K2M é"
