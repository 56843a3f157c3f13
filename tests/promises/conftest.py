"""Skip tests that need privileges which this user does not have."""

import shutil
import subprocess
from functools import cache


@cache
def own_mounts():
    """Return the command prefix for an own mount namespace, or None if not permitted."""
    return first_allowed(["-rm"], ["-m"], then=["mount", "-t", "tmpfs", "tmpfs", "/mnt"])


@cache
def own_network():
    """Return the command prefix for an own network namespace, or None."""
    return first_allowed(["-n"], ["-rn"], then=["ip", "link", "set", "lo", "up"])


def first_allowed(*options, then):
    if shutil.which("unshare") is None or shutil.which(then[0]) is None:
        return None
    for option in options:
        command = ["unshare", *option]
        if subprocess.run([*command, *then], capture_output=True, check=False).returncode == 0:
            return command
    return None


collect_ignore = [
    *([] if own_mounts() else ["test_full_disk.py", "test_mirror_full.py"]),
    *([] if own_network() else ["test_network_cuts.py"]),
]
