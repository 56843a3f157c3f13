"""The fault table of the delivery engine: the means are those of the engine's own tests."""

import pytest

from appliance.webhooks.client import Budgets
from tests.appliance.webhooks.conftest import (  # noqa: F401 - fixtures are asked for by name
    change_outside,
    client,
    make_client,
    names,
    open_receiver,
    outside,
    receiver,
    settings,
    surroundings,
    uptime,
    world,
)
from tests.faults.webhooks.patience import BUDGETS


@pytest.fixture
def patient(change_outside) -> Budgets:  # noqa: F811 - the fixture above
    """The dispatcher started next is as patient as this run allows."""
    change_outside(budgets=BUDGETS)
    return BUDGETS
