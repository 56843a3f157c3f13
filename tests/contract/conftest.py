"""The fixtures of the contract: `venue` and `sandbox`, and a partner's `receiver`."""

from tests.app.conftest import receiver
from tests.contract.venue import sandbox, venue

__all__ = ["receiver", "sandbox", "venue"]
