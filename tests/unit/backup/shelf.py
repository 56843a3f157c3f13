"""A backup target in memory."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from appliance.backup.targets import TargetError


@dataclass
class Shelf:
    """A target in memory. `trouble` is raised by every call, if set."""

    files: dict[str, bytes] = field(default_factory=dict)
    markers: dict[str, bytes] = field(default_factory=dict)
    trouble: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)

    @asynccontextmanager
    async def open(self, _settings, _directory):
        if self.trouble:
            raise TargetError(self.trouble)
        yield self

    async def list(self):
        return {name: len(content) for name, content in self.files.items()}

    async def put(self, path, size):
        self.calls.append(("put", path.name))
        self.files[path.name] = path.read_bytes()
        assert len(self.files[path.name]) == size

    async def get(self, name, path):
        self.calls.append(("get", name))
        path.write_bytes(self.files[name])

    async def head(self, name):
        self.calls.append(("head", name))
        return self.files[name][:8192]

    async def delete(self, name):
        del self.files[name]

    async def read_marker(self, name):
        return self.markers.get(name)

    async def write_marker(self, name, content):
        self.markers[name] = content
