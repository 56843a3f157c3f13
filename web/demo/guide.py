"""What the demo prints: the whole loop, to be followed by copy and paste."""

import json
from pathlib import Path

from appliance.actions.offer_pairing import PAIRING_LIFE_MS
from web.demo.evening import FREE_SLOT, FREE_TABLE, Prepared

_GUIDE = """\
Riad Atlas is open for the evening of {live.tonight}. This is a demo: it listens on this
machine alone{lifetime}.

1. Book table {table} at {slot} tonight in the test environment, as a partner does:

BOOKING=$(curl -s {test_base}/v1/reservations -H 'Authorization: Bearer {test.key}' \
-H 'Content-Type: application/json' -d '{booking}'); echo "$BOOKING"

2. Open the guest's link: the code to show at the door.

LINK=$(echo "$BOOKING" | grep -o 'http[^"]*/access/[^"]*'); echo "$LINK"

3. Scan the code at the door. Its text stands in the page; the link itself is read as well.

PASS=$(curl -s "$LINK" | grep -o 'data-pass="[^"]*' | cut -d'"' -f2); echo "$PASS"
curl -s {test_base}/terminal/v1/scans -H 'Authorization: Bearer {test.terminal_token}' \
-H 'Content-Type: application/json' -d "{{\\"scanId\\":\\"{scan_id}\\",\\"code\\":\\"$PASS\\"}}"

4. See reservation.created and reservation.checked_in arrive, signed, at an echo receiver:

{watch}

Where to look
  portal              {base}/portal
    sign in           {welcome}
                      (works once: choose a password; you are Yasmine, the owner)
  door, pair a phone  {live.pairing_link}
                      (works once, for {minutes} minutes; the portal makes another)
  a guest's link      {live.guest_link}
  booking page        {base}/book
  guide for partners  {base}/docs
  interface, to try   {test_base}/docs/reference
  sandbox             {test_base}   (paste the test key: watch webhooks arrive)
  live                {base}        key {live.key}
  test                {test_base}   key {test.key}
  scanner, live       terminal token {live.terminal_token}
  scanner, test       terminal token {test.terminal_token}
  echo receiver       {watch}   (as JSON: {receiver})
  letters of test     {test_base}/outbox
  what was sent       {program} deliveries --data {directory} --environment test --json
"""


def make_guide(
    live: Prepared, test: Prepared, *, token: str, welcome: str, directory: Path,
    passing: bool, scan_id: str, program: str,
) -> str:  # fmt: skip
    """The guide. Every command in it is one line, so that it survives being copied."""
    test_base = test.environment.links.base
    booking = {
        "tableId": test.free_table_id,
        "date": test.tonight,
        "slot": FREE_SLOT,
        "guests": 2,
        "customer": {"name": "Amina Idrissi", "phone": "+212 611 111 111"},
        "idempotencyKey": "demo-1",
        "notifyCustomer": False,
    }
    return _GUIDE.format(
        live=live,
        test=test,
        base=live.environment.links.base,
        test_base=test_base,
        lifetime=" and forgets everything when it stops" if passing else "",
        table=FREE_TABLE,
        slot=FREE_SLOT,
        booking=json.dumps(booking),
        scan_id=scan_id,
        program=program,
        welcome=welcome,
        minutes=PAIRING_LIFE_MS // 60_000,
        receiver=f"{test_base}/echo/{token}",
        watch=f"{test_base}#{token}",
        directory=directory,
    )
