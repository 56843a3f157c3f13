#!/usr/bin/env bash
# Book a table with curl alone.
# SERVICE_URL=… SERVICE_KEY=… ./book.sh DATE SLOT GUESTS NAME PHONE REFERENCE
set -euo pipefail
date=$1 slot=$2 guests=$3 name=$4 phone=$5 reference=$6

stored=./${reference//\//%2F}.json # in production: a column of your own booking
answer=$(mktemp) headers=$(mktemp)
trap 'rm -f "$answer" "$headers"' EXIT

# --retry repeats after network errors, 429 and 503, and waits as long as Retry-After says.
# That is safe because of the idempotency key. Without --fail, a 409 is an answer like any other
# and never repeated. The answer goes to a file, which each try begins anew.
call() {
  curl --silent --show-error --max-time 15 --retry 4 --retry-all-errors --output "$answer" --dump-header "$headers" \
    --header "Authorization: Bearer $SERVICE_KEY" --header 'Content-Type: application/json' "$@"
}

refuse() {
  cat "$answer" >&2
  exit 1
}

# Ends with the answer to the stored request; returns when another table may do.
ask() {
  local status
  status=$(call "$SERVICE_URL/v1/reservations" --data-binary "@$stored" --write-out '%{http_code}')
  if grep -qiE '^Reservation-Status: (cancelled|declined)' "$headers"; then
    rm "$stored"
    echo 'this booking was cancelled since: use a new reference' >&2
    exit 1
  fi
  if [[ $status = 20[01] ]]; then # 200: it was booked before, here is that result
    cat "$answer"
    exit 0
  fi
  if [[ $status = 400 || $status = 409 ]] || grep -q '"TABLE_NOT_FOUND"' "$answer"; then
    rm "$stored" # nothing was booked; any other refusal leaves that open
  fi
  grep -qE '"code": ?"(TABLE_TAKEN|GUESTS_OUT_OF_RANGE)"' "$answer" || refuse
}

# Started again: it may be booked or not.
if [ -e "$stored" ]; then ask; fi

# Which tables are free? In your program use a JSON parser; a shell has grep.
call "$SERVICE_URL/v1/availability?date=$date&slot=$slot"
if grep -q '"code":' "$answer"; then refuse; fi
free=$(grep -o '"id":"[^"]*","name":"[^"]*","available":true' "$answer" | cut -d'"' -f4 || true)

# The answer is indicative: somebody may be faster, so try the next table on TABLE_TAKEN.
for table in $free; do
  cat >"$stored.part" <<JSON
{"tableId": "$table", "date": "$date", "slot": "$slot", "guests": $guests,
 "customer": {"name": "$name", "phone": "$phone"},
 "externalRef": "$reference", "idempotencyKey": "$reference", "notifyCustomer": false}
JSON
  mv "$stored.part" "$stored" # whole or not at all, before it is sent
  ask
done
echo "no table for $guests on $date at $slot" >&2
exit 1
