"""The kernel's messages about links and routes, in a network of their own."""

import shutil
import subprocess
import sys
import textwrap

import pytest

# The loopback interface of the new network is switched on (SIOCSIFFLAGS, IFF_UP): that is news.
_SWITCH_ON = """
    import asyncio, fcntl, socket, struct
    from appliance.webhooks.network import SystemNetwork

    async def main():
        network, heard = SystemNetwork(), asyncio.Event()
        assert not network.has_way_out()
        stop = network.watch(heard.set)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            fcntl.ioctl(asker, 0x8914, struct.pack("16sh14x", b"lo", 1))
        async with asyncio.timeout(60):
            await heard.wait()
        stop()

    asyncio.run(main())
"""


def in_a_network_of_its_own(*command):
    return subprocess.run(["unshare", "-rn", *command], capture_output=True, text=True, check=False)


if shutil.which("unshare") and in_a_network_of_its_own("true").returncode == 0:

    @pytest.mark.network
    @pytest.mark.process
    def test_a_link_that_comes_up_is_heard_of_without_looking():
        program = textwrap.dedent(_SWITCH_ON)

        child = in_a_network_of_its_own(sys.executable, "-c", program)

        assert child.returncode == 0, child.stderr
