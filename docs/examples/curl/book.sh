#!/usr/bin/env bash
# Book a table with curl alone.
# SERVICE_URL=… SERVICE_KEY=… ./book.sh DATE SLOT GUESTS NAME PHONE REFERENCE
set -euo pipefail
date=$1 slot=$2 guests=$3 name=$4 phone=$5 reference=$6

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# --retry repeats after network errors, 429 and 503, and waits as long as Retry-After says.
# That is safe because of the idempotency key. Without --fail, a 409 is an answer like any other
# and never repeated. The answer goes to a file, which each try begins anew.
call() {
  curl --silent --show-error --max-time 15 --retry 4 --retry-all-errors --output "$answer" \
    --header "Authorization: Bearer $SERVICE_KEY" --header 'Content-Type: application/json' "$@"
}

refuse() {
  cat "$answer" >&2
  exit 1
}

# Which tables are free? In your program use a JSON parser; a shell has grep.
call "$SERVICE_URL/v1/availability?date=$date&slot=$slot"
if grep -q '"code":' "$answer"; then refuse; fi
free=$(grep -o '"id":"[^"]*","name":"[^"]*","available":true' "$answer" | cut -d'"' -f4 || true)

# The answer is indicative: somebody may be faster, so try the next table on TABLE_TAKEN.
for table in $free; do
  call "$SERVICE_URL/v1/reservations" --data @- <<JSON
{"tableId": "$table", "date": "$date", "slot": "$slot", "guests": $guests,
 "customer": {"name": "$name", "phone": "$phone"},
 "externalRef": "$reference", "idempotencyKey": "$reference", "notifyCustomer": false}
JSON
  if ! grep -q '"code":' "$answer"; then
    cat "$answer"
    exit 0
  fi
  grep -qE '"code": ?"(TABLE_TAKEN|GUESTS_OUT_OF_RANGE)"' "$answer" || refuse
done
echo "no table for $guests on $date at $slot" >&2
exit 1
