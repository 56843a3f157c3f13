#!/usr/bin/env bash
# Book a table with curl alone.
# SERVICE_URL=… SERVICE_KEY=… ./book.sh DATE SLOT GUESTS NAME PHONE REFERENCE
set -euo pipefail
date=$1 slot=$2 guests=$3 name=$4 phone=$5 reference=$6

# --retry repeats after network errors, 429 and 5xx, and waits as long as Retry-After says.
# That is safe because of the idempotency key. A 409 is never repeated.
call() {
  curl --silent --show-error --fail-with-body --max-time 15 --retry 4 --retry-connrefused \
    --header "Authorization: Bearer $SERVICE_KEY" --header 'Content-Type: application/json' "$@"
}

# Which tables are free? In your program use a JSON parser; a shell has grep.
availability=$(call "$SERVICE_URL/v1/availability?date=$date&slot=$slot") || {
  echo "$availability" >&2
  exit 1
}
free=$(grep -o '"id":"[^"]*","name":"[^"]*","available":true' <<<"$availability" |
  cut -d'"' -f4 || true)

# The answer is indicative: somebody may be faster, so try the next table on TABLE_TAKEN.
for table in $free; do
  status=0
  answer=$(call "$SERVICE_URL/v1/reservations" --data @- <<JSON
{"tableId": "$table", "date": "$date", "slot": "$slot", "guests": $guests,
 "customer": {"name": "$name", "phone": "$phone"},
 "externalRef": "$reference", "idempotencyKey": "$reference", "notifyCustomer": false}
JSON
  ) || status=$?
  case $answer in
    *'"code":"TABLE_TAKEN"'* | *'"code":"GUESTS_OUT_OF_RANGE"'*) continue ;;
  esac
  echo "$answer"
  exit "$status"
done
echo "no table for $guests on $date at $slot" >&2
exit 1
