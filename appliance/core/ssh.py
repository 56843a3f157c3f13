"""SSH connections to servers: the algorithms that the box accepts, and its key.

Every SSH connection of the program is made by `connect`. Functions import asyncssh when they need
it, because it takes 5 MB and would delay the start of the box.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from appliance.core.files import atomic_write, make_folder

if TYPE_CHECKING:
    import asyncssh

OPTIONS: dict[str, Any] = {
    "config": None,
    "gss_host": None,  # by default, each login looks up this machine's name, for up to 10 s
    "x509_trusted_cert_paths": [],  # by default, it reads the home folder, which systemd may hide
    # Other algorithms, such as 8192-bit Diffie-Hellman, could block the event loop for too long.
    "kex_algs": ["mlkem768x25519-sha256", "curve25519-sha256"],
    "encryption_algs": ["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
    # A server could send a few bytes that unpack to all of the memory.
    "compression_algs": None,
}
# Many small packets, read in one step, would block the event loop.
_READ_AT_ONCE = 16 * 1024
_KEY = "ssh_key"  # a file in secrets/


def key_file(root: Path) -> Path:
    """Return the path of the box's private key. `root` is the data directory."""
    return root / "secrets" / _KEY


def ensure_key(root: Path) -> str:
    """Return the box's public key as a line for `authorized_keys`. Creates the key if needed."""
    import asyncssh  # noqa: PLC0415 - see above

    path = key_file(root)
    if not path.exists():
        make_folder(path.parent)
        key = asyncssh.generate_private_key("ssh-ed25519", comment="venuebox")
        atomic_write(path, key.export_private_key())
    return asyncssh.read_private_key(path).export_public_key().decode().strip()


async def connect(
    host: str, port: int, user: str, is_trusted: "Callable[[asyncssh.SSHKey], bool]", **options: Any
) -> "asyncssh.SSHClientConnection":
    """Connect and sign in. `is_trusted` returns whether to accept the server's host key.

    `options` are more options of asyncssh. The caller must set a deadline. Raises OSError and
    asyncssh.Error.
    """
    import asyncssh  # noqa: PLC0415 - see above

    class Client(asyncssh.SSHClient):
        def validate_host_public_key(
            self, host: str, addr: str, port: int, key: asyncssh.SSHKey
        ) -> bool:
            del host, addr, port
            return is_trusted(key)

    return await asyncssh.connect(
        host, port, client_factory=Client, username=user, tunnel=cast("Any", _Tcp()),
        **({"agent_path": None} if "client_keys" in options else {}),
        **{"known_hosts": ([], [], [])} | options | OPTIONS,
    )  # fmt: skip


class _Tcp:
    """Opens TCP connections that are read in small steps, for asyncssh to talk through."""

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        transport, protocol = await asyncio.get_running_loop().create_connection(
            factory, host, port
        )
        cast("Any", transport).max_size = _READ_AT_ONCE
        return transport, protocol
