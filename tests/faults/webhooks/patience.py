"""How long an attempt of these tests may take: the contract's ten seconds in `make soak`."""

from appliance.webhooks.client import Budgets
from tests.soak.scale import FULL

BUDGETS = Budgets() if FULL else Budgets(total=0.6, connect=60.0, drain=0.2, idle=4.0)
TOTAL = BUDGETS.total
EARLY = 0.1  # a clock that counts from the arrival of the request begins a little later
LATE = 0.3 if FULL else 30.0  # a test must hold on a busy machine; a soak runs on a quiet one
