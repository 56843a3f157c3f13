"""A quota that is used up: SQLite's writes fail with EDQUOT, as the kernel would have it."""

import ctypes
import errno
from contextlib import contextmanager

import apsw

_PWRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64,
    use_errno=True,
)  # fmt: skip


class _Plain(apsw.VFS):
    """SQLite's own files, whose system calls can be told."""

    def __init__(self):
        super().__init__("quota", "unix")


@_PWRITE
def _refuse(_file, _data, _size, _offset):
    ctypes.set_errno(errno.EDQUOT)
    return -1


@contextmanager
def used_up():
    """While the block lasts, SQLite finds no room for anything in this process."""
    files = _Plain()
    address = ctypes.cast(_refuse, ctypes.c_void_p).value
    for call in ("pwrite64", "pwrite"):
        assert files.xSetSystemCall(call, address)
    try:
        yield
    finally:
        for call in ("pwrite64", "pwrite"):
            files.xSetSystemCall(call, 0)
        files.unregister()
