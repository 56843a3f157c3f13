#!/usr/bin/env bash
# See a signed webhook arrive without a server of your own: the test environment lends you one.
# SERVICE_URL=…/test SERVICE_KEY=svc_test_… ./webhook.sh
set -euo pipefail

call() {
  curl --silent --show-error --fail-with-body --max-time 15 \
    --header "Authorization: Bearer $SERVICE_KEY" --header 'Content-Type: application/json' "$@"
}
member() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d'"' -f4; }
refuse() {
  echo "$1" >&2
  exit 1
}

# 1. Borrow a receiver. Open what `watch` says in a browser to see what arrives, in every detail.
lent=$(call --request POST "$SERVICE_URL/echo") || refuse "$lent"
url=$(member url <<<"$lent") token=$(member token <<<"$lent")
echo "watch: $(member watch <<<"$lent")"

# 2. Register it. Keep the secret where your receiver finds it.
endpoint=$(call "$SERVICE_URL/v1/webhooks" --data "{\"url\": \"$url\"}") || refuse "$endpoint"
id=$(member id <<<"$endpoint")
trap 'call --request DELETE "$SERVICE_URL/v1/webhooks/$id" >/dev/null' EXIT
echo "secret: $(member secret <<<"$endpoint")"

# 3. Ask for a test event, and look at what came.
call "$SERVICE_URL/v1/webhooks/test" --data "{\"endpointId\": \"$id\"}"
echo
for _ in $(seq 50); do
  verdict=$(call "$SERVICE_URL/echo/$token" | member verdict || true)
  if [ -n "$verdict" ]; then
    echo "signature: $verdict"
    exit 0
  fi
  sleep 0.2
done
echo "nothing arrived" >&2
exit 1
