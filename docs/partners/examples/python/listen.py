"""Webhooks on this machine: python3 listen.py http://127.0.0.1:9000/ or listen.py trigger TYPE"""

import json
import os
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

SERVICE, FILE = os.environ["SERVICE_URL"], Path("listen.json")  # FILE keeps receiver and secret
KEY = {"Authorization": "Bearer " + os.environ["SERVICE_KEY"], "Content-Type": "application/json"}


def send(method, url, body=None, headers=KEY):
    data = body if isinstance(body, bytes) else body and json.dumps(body).encode()
    with urlopen(Request(url, data, headers, method=method), timeout=30) as answer:
        return json.load(answer) if headers is KEY else answer.status


if sys.argv[1] == "trigger":
    sys.exit(print(send("POST", f"{SERVICE}/v1/webhooks/test", {"type": sys.argv[2]})))
if not FILE.exists():
    echo, known = send("POST", f"{SERVICE}/echo"), send("GET", f"{SERVICE}/v1/webhooks")
    wanted = {"url": echo["url"], "events": known["events"] + known["optionalEvents"]}
    endpoint = send("POST", f"{SERVICE}/v1/webhooks", wanted)
    FILE.write_text(json.dumps({"url": echo["url"], "secret": endpoint["secret"], "last": 0}))
state = json.loads(FILE.read_text())
print("export SERVICE_WEBHOOK_SECRET=" + state["secret"], flush=True)
while True:
    for item in reversed(send("GET", f"{state['url']}?after={state['last']}")["items"]):
        headers = {
            name: value for name, value in item["headers"] if name.startswith(("X-", "Content-T"))
        }
        try:
            done = send("POST", sys.argv[1], item["body"].encode(), headers)
        except OSError as error:  # your handler refused it, or does not run
            done = error
        print(item["event"], done, flush=True)
        state["last"] = item["number"]
        FILE.write_text(json.dumps(state))
    time.sleep(1)
