"""Create and use a box inside the namespaces of test_binary.py, in an empty root.

The arguments are the root and the scenario. Prints one JSON object. Uses only Python's standard
library.
"""

import http.client
import json
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

HOST, PORT = "127.0.0.1", 8080
SETTINGS = {
    "VENUEBOX_DOOR_EARLY_MINUTES": "1440",
    "VENUEBOX_DATA": "/srv/box",
}


class Empty:
    """A root that contains only the program and the C library."""

    def __init__(self, root):
        self.root, self.program = root, "/venuebox"
        folder = self.run("service", "unpack", "/srv/program").strip()
        self.program = f"{folder}/venuebox"

    def start(self, *argv):
        return subprocess.Popen(
            ["/usr/sbin/chroot", "--userspec=65534:65534", self.root, self.program, *argv],
            env=SETTINGS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *argv, status=0):
        process = self.start(*argv)
        out, err = process.communicate(timeout=60)
        assert process.returncode == status, (argv, process.returncode, out, err)
        return out if status == 0 else err

    def serve(self):
        box = self.start("serve", "--host", HOST, "--port", str(PORT))
        line = box.stdout.readline()
        assert line == f"ready http://{HOST}:{PORT}\n", (line, box.stderr.read())
        return box


def call(method, path, token=None, body=None, accept="application/json"):
    """Return status and text of an answer."""
    connection = http.client.HTTPConnection(HOST, PORT, timeout=20)
    headers = {"Accept": accept} | ({"Authorization": f"Bearer {token}"} if token else {})
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, text


def must(status, method, path, token=None, body=None):
    got, text = call(method, path, token, body)
    assert got == status, (method, path, got, text)
    return json.loads(text)


def loop(world):
    """Run init, serve, book, open the guest page, scan and restart. The answers stay the same."""
    found = {"version": world.run("version")}
    world.run("init", "--venue", "/srv/venue.toml")
    key = json.loads(world.run("key", "create", "--environment", "live", "--name", "P", "--json"))[
        "key"
    ]
    terminal = json.loads(
        world.run("terminal", "create", "--environment", "live", "--name", "D", "--json")
    )["token"]
    box = world.serve()
    evening = must(200, "GET", "/terminal/v1/me", terminal)["evening"]
    table = must(200, "GET", "/v1/venue", key)["tables"][0]["id"]
    wish = {"tableId": table, "date": evening, "guests": 2, "idempotencyKey": "one",
            "customer": {"name": "Salma", "phone": "0600000001"}}  # fmt: skip
    booked = must(201, "POST", "/v1/reservations", key, wish)
    pages = {}
    for path in ("/", "/door", "/docs", "/docs/reference", "/test", "/portal/sign-in",
                 booked["guestAccessUrl"].split(":8080", 1)[1]):  # fmt: skip
        status, text = call("GET", path, accept="text/html")
        pages[path] = status
        for asset in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
            pages[asset] = call("GET", asset)[0]
    scan = {"scanId": "a", "code": booked["guestAccessUrl"]}
    found["scans"] = [
        must(200, "POST", "/terminal/v1/scans", terminal, scan | {"scanId": name})["result"]
        for name in ("a", "b")
    ]
    found["doctor"] = json.loads(world.run("doctor", "--json"))["checks"]
    box.send_signal(signal.SIGTERM)
    found["status"] = box.wait(20)
    box = world.serve()
    found["replayed"] = must(200, "POST", "/v1/reservations", key, wish) == booked
    found["arabic"] = call("GET", "/?lang=ar", accept="text/html")[1].count('dir="rtl"')
    box.terminate()
    box.wait(20)
    return found | {"pages": pages}


def hostile(world):
    """Run the box with noexec and full temporary directories."""
    world.run("init", "--venue", "/srv/venue.toml")
    for name in ("tmp", "var/tmp"):
        volume = f"{world.root}/{name}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=64k,mode=1777", "none", volume],
                       check=True)  # fmt: skip
        with suppress(OSError):  # the write fails when the disk is full
            Path(volume, "filler").write_bytes(b"x" * 100_000)
    before = tree_of(f"{world.root}/srv/program")
    box = world.serve()
    health = call("GET", "/health")[0]
    box.terminate()
    status = box.wait(20)
    written = before != tree_of(f"{world.root}/srv/program")
    return {"health": health, "status": status, "written": written}


def tree_of(folder):
    """Return everything in a folder: path, inode and time of change."""
    return [[str(path), path.lstat().st_ino, path.lstat().st_ctime_ns]
            for path in sorted(Path(folder).rglob("*"))]  # fmt: skip


if __name__ == "__main__":
    # Own network and mount namespaces: only loopback, and mounts that end with this process.
    subprocess.run(["/usr/sbin/ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", f"{sys.argv[1]}/proc"], check=True)
    print(json.dumps({"loop": loop, "hostile": hostile}[sys.argv[2]](Empty(sys.argv[1]))))
