"""The check of a signature, as README and OpenAPI print it, is one that partners may copy."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from web.api.openapi.document import build_document
from web.routes import PARTNER_ROUTE_TABLE

ROOT = Path(__file__).parents[3]
DESCRIPTION = build_document(PARTNER_ROUTE_TABLE, [])["info"]["description"]
TEXTS = {"readme": (ROOT / "README.md").read_text("utf-8"), "openapi": DESCRIPTION}
(CASE, *_) = json.loads((ROOT / "tests/vectors/webhook_signature.json").read_text("utf-8"))["cases"]


def sample(text: str) -> Any:
    code = re.search(r"```python\n(.*?def is_genuine.*?)```", text, re.DOTALL)
    assert code is not None
    namespace: dict[str, Any] = {}
    exec(code[1], namespace)  # noqa: S102 - the text is ours
    return namespace["is_genuine"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_printed_check_takes_the_vector(text: str):
    is_genuine = sample(TEXTS[text])

    assert is_genuine(CASE["secrets"][0], CASE["header"], CASE["body"].encode(), CASE["t"])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "header", ["", ",", "v1", "t=", "v1=é", "t=1,v1=é", "t=x,v1=", "=", "t=é,v1=0", "nonsense"]
)
def test_the_printed_check_refuses_whatever_a_stranger_sends_and_never_stumbles(
    text: str, header: str
):
    assert sample(TEXTS[text])("whsec_x", header, b"{}", 0.0) is False
