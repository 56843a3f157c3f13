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

    async def get(self, name, path, size):
        self.calls.append(("get", name))
        path.write_bytes(self.files[name][:size])

    async def delete(self, name):
        del self.files[name]

    async def read(self, name, size):
        if name in self.files:
            self.calls.append(("head", name))
        content = self.files.get(name, self.markers.get(name))
        return content and content[:size]

    async def write_marker(self, name, content):
        self.markers[name] = content
