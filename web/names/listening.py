"""Where the box listens: in the open, and beside that over TLS."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from appliance.alone import speaks_tls
from appliance.errors import Trouble
from web.names.addresses import in_url


@dataclass(slots=True)
class Listening:
    """The sockets of a box. `secured` is None where it speaks no TLS."""

    host: str
    plain: socket.socket
    secured: socket.socket | None = None

    @property
    def port(self) -> int:
        """The one in the open; whoever asked for any has got one."""
        return int(self.plain.getsockname()[1])

    @property
    def address(self) -> str:
        """As it is listened on."""
        return f"http://{in_url(self.host)}:{self.port}"

    @contextmanager
    def securely(self, tls_port: int) -> Iterator[None]:
        """Have the other port too, before anything is begun that its lack would end."""
        if not speaks_tls(self.host, tls_port):
            yield
            return
        address = self.plain.getsockname()[0]
        with listen(address, tls_port, "server.tls_port") as self.secured:
            yield


def listen(host: str, port: int, chosen_by: str = "--host and --port") -> socket.socket:
    """A bound socket, not accepting yet; Trouble when the address cannot be had."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(kind, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise Trouble(
            f"{in_url(host)}:{port} cannot be listened on ({error.strerror}): "
            f"choose another with {chosen_by}"
        ) from None
    listener.setblocking(False)  # noqa: FBT003 - the library's own way to say it
    return listener
