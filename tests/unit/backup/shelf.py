"""A backup target in memory, to which files are copied without a child process."""

import asyncio
from dataclasses import dataclass, field

from appliance.backup import copy_process
from appliance.backup.targets import TargetError


@dataclass
class Shelf:
    """A backup target in memory. If `trouble` is set, every call raises it."""

    files: dict[str, bytes] = field(default_factory=dict)
    trouble: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)

    def run(self, job, _warn, tell=lambda *_: None):
        """Run the job of the child process in this process."""
        if self.trouble:
            raise TargetError(self.trouble)
        return asyncio.run(copy_process.perform(job, self, tell))

    async def list(self):
        return {name: len(content) for name, content in self.files.items()}

    async def put(self, path, size, _tell):
        self.calls.append(("put", path.name))
        self.files[path.name] = path.read_bytes()
        assert len(self.files[path.name]) == size

    async def get(self, name, path, size, _tell):
        self.calls.append(("get", name))
        path.write_bytes(self.files[name][:size])

    async def delete(self, name):
        del self.files[name]
