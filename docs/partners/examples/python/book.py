"""Book a table.

SERVICE_URL=… SERVICE_KEY=… python3 book.py DATE SLOT GUESTS NAME PHONE REFERENCE
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

URL = os.environ["SERVICE_URL"]
KEY = os.environ["SERVICE_KEY"]


def send(method, path, body):
    """The answer, open to be read. A refusal is an answer too."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, body, headers, method=method)
    try:
        return urllib.request.urlopen(request, timeout=15)
    except urllib.error.HTTPError as refusal:
        return refusal


def call(method, path, body=None, tries=5):
    """(status, body, headers). Repeats after 429, 503 and network errors, and never a 409."""
    for remaining in reversed(range(tries)):
        wait = 2 ** (tries - remaining - 1)
        try:
            with send(method, path, body) as response:
                answer = json.load(response)
            if response.status not in (429, 503) or not remaining:
                return response.status, answer, response.headers
            wait = int(response.headers.get("Retry-After", "1"))
        except (OSError, http.client.HTTPException, ValueError):
            # No connection, it broke, or not the box answered: the booking may exist or not.
            if not remaining:
                raise
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def tables_that_fit(date, slot, guests):
    """Ids of free tables for that party, the smallest first."""
    _, venue, _ = call("GET", "/v1/venue")
    query = urllib.parse.urlencode({"date": date, "slot": slot})
    status, availability, _ = call("GET", f"/v1/availability?{query}")
    if status != 200:
        sys.exit(f"{availability['code']}: {availability['error_en']}")
    free = {table["id"] for table in availability["tables"] if table["available"]}
    fitting = [
        table
        for table in venue["tables"]
        if table["id"] in free and table["capacityMin"] <= guests <= table["capacityMax"]
    ]
    return [table["id"] for table in sorted(fitting, key=lambda table: table["capacityMax"])]


def store(stored, request):
    """Whole or not at all, before it is sent."""
    partial = stored.with_suffix(".part")
    partial.write_text(json.dumps(request), "utf-8")
    partial.replace(stored)


def ask(stored):
    """The creation result of the stored request, or None when its table is taken."""
    status, answer, headers = call("POST", "/v1/reservations", stored.read_bytes())
    if headers.get("Reservation-Status") in ("cancelled", "declined"):
        stored.unlink()
        sys.exit("this booking was cancelled since: use a new reference")
    if status in (200, 201):  # 200: it was booked before, here is that result
        return answer
    if status in (400, 409) or answer["code"] == "TABLE_NOT_FOUND":
        stored.unlink()  # nothing was booked; any other refusal leaves that open
    if answer["code"] != "TABLE_TAKEN":
        sys.exit(f"{answer['code']}: {answer['error_en']}")
    return None


def book(date, slot, guests, name, phone, reference):
    """The creation result. `reference` is your own number of this booking."""
    # In production: a column of your own booking.
    stored = Path(urllib.parse.quote(reference, "") + ".json")
    if stored.exists() and (answer := ask(stored)):  # started again: it may be booked or not
        return answer
    for table_id in tables_that_fit(date, slot, guests):
        request = {
            "tableId": table_id,
            "date": date,
            "slot": slot,
            "guests": guests,
            "customer": {"name": name, "phone": phone},
            "externalRef": reference,
            "idempotencyKey": reference,
            "notifyCustomer": False,
        }
        store(stored, request)
        if answer := ask(stored):
            return answer
    sys.exit(f"no table for {guests} on {date} at {slot}")


if __name__ == "__main__":
    date, slot, guests, name, phone, reference = sys.argv[1:]
    print(json.dumps(book(date, slot, int(guests), name, phone, reference)))
