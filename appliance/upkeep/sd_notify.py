"""Tell systemd that the box is ready, alive or leaving: one datagram, no library."""

import os
import socket
import sys
from collections.abc import Mapping


def sd_notify(environ: Mapping[str, str], message: str) -> None:
    """Send `READY=1`, `WATCHDOG=1` or `STOPPING=1` to whoever started us, if he listens."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # a name without a file
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)  # noqa: FBT003 - the library's own way to say it
            sender.sendto(message.encode(), address)
    except OSError:
        return


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """How often systemd wants to hear of us, halved; None when it does not."""
    wanted = environ.get("WATCHDOG_USEC", "")
    meant = environ.get("WATCHDOG_PID")
    is_ours = meant is None or meant in _own_processes()
    return int(wanted) / 2_000_000 if wanted.isdecimal() and is_ours else None


def _own_processes() -> set[str]:
    """The one file starts itself once more: systemd knows the process that waits for this one."""
    is_one_file = getattr(sys, "frozen", False)
    return {str(os.getpid()), *([str(os.getppid())] if is_one_file else [])}
