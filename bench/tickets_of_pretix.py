"""An organizer, an evening and paid tickets, written by pretix's own models.

Run by the Python in which pretix is installed: `python tickets_of_pretix.py COUNT`. Prints JSON.
"""

import datetime as dt
import json
import os
import sys
from decimal import Decimal

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pretix.settings")
django.setup()

from django.utils.timezone import now  # noqa: E402 - only after setup
from django_scopes import scopes_disabled  # noqa: E402 - as above
from pretix.base.models import Event, Order, OrderPosition, Organizer, Team  # noqa: E402 - as above

BATCH = 1000


def main(count: int) -> None:
    """Tickets whose secrets are `bench` and their number."""
    organizer = Organizer.objects.create(name="Bench", slug="bench")
    event = Event.objects.create(
        organizer=organizer, name="Soirée", slug="evening", date_from=now(), currency="MAD",
        plugins="", live=True,
    )  # fmt: skip
    item = event.items.create(name="Entrée", default_price=0)
    door = event.checkin_lists.create(name="Porte", all_products=True)
    team = Team.objects.create(
        organizer=organizer, name="door", all_events=True, all_event_permissions=True
    )
    channel = organizer.sales_channels.get(identifier="web")
    orders = Order.objects.bulk_create(
        (
            Order(organizer=organizer, event=event, code=f"B{n:06d}", email="salma@example.com",
                  status=Order.STATUS_PAID, datetime=now(), expires=now() + dt.timedelta(days=9),
                  total=Decimal(0), locale="en", sales_channel=channel, secret=f"order{n}")
            for n in range(count)
        ),
        batch_size=BATCH,
    )  # fmt: skip
    OrderPosition.objects.bulk_create(
        (
            OrderPosition(organizer=organizer, order=order, item=item, price=Decimal(0),
                          positionid=1, secret=f"bench{n:026d}", pseudonymization_id=f"P{n}",
                          attendee_name_parts={"_scheme": "full", "full_name": "Salma Bennani"},
                          attendee_name_cached="Salma Bennani", tax_rate=0, tax_value=0)
            for n, order in enumerate(orders)
        ),
        batch_size=BATCH,
    )  # fmt: skip
    print(json.dumps({"token": team.tokens.create(name="bench").token, "list": door.pk}))


if __name__ == "__main__":
    with scopes_disabled():
        main(int(sys.argv[1]))
