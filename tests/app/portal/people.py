"""Staff for tests of the portal, signed in without hashing a password."""

import re
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from appliance.core.saved_settings import save_settings
from appliance.database.connection import Transaction
from appliance.staff.accounts import create_staff
from appliance.staff.model import set_password
from appliance.staff.sign_in import OpenedSession, start_session
from tests.conftest import Running

PASSWORD, NEW_PASSWORD = "le thé est servi à minuit", "une menthe fraîche au matin"
CHEAP = {"iterations": 1, "lanes": 1, "memory_cost": 64}


def hash_cheaply(password: str) -> str:
    """Return a fast hash of a password."""
    return Argon2id(salt=bytes(16), length=32, **CHEAP).derive_phc_encoded(password.encode())


HASH, NEW_HASH = hash_cheaply(PASSWORD), hash_cheaply(NEW_PASSWORD)
FROM_OURS = {"Sec-Fetch-Site": "same-origin", "Accept-Language": "en"}


@dataclass
class Person:
    """A signed-in staff member with their own browser."""

    id: str
    running: Running
    session: OpenedSession
    language: str = "en"

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Cookie": f"{self.running.cookie('session')}={self.session.secret}",
            "Sec-Fetch-Site": "same-origin",
            "Accept-Language": self.language,
        }

    async def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        """Open a page. Return (status, text, headers). Redirects are not followed."""
        return await self.send("GET", path, headers=headers)

    async def post(
        self, path: str, form: dict[str, Any] | list[tuple[str, str]] | None = None, **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        """Send a form. Return (status, text, headers)."""
        return await self.send("POST", path, data=form or {"-": ""}, headers=headers)

    async def save(self, path: str, form: dict[str, Any]) -> tuple[int, str, dict[str, str]]:
        """Open a tab of the box page and send its form at `path`, filled with `form`."""
        _, page, _ = await self.get(f"/portal/box?tab={path.rpartition('/')[2]}")
        form_with_mark = rf'action="{path}"[^>]*>\s*<input type="hidden" name="seen" value="(\w+)"'
        seen = re.search(form_with_mark, page)
        assert seen is not None
        return await self.post(path, {"seen": seen[1], **form})

    async def send(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **kwargs: Any
    ) -> tuple[int, str, dict[str, str]]:
        async with self.running.client.request(
            method, path, headers={**self.headers, **(headers or {})}, allow_redirects=False,
            **kwargs,
        ) as response:  # fmt: skip
            if response.content_type == "text/event-stream":  # the stream never ends
                response.close()
                return response.status, "", dict(response.headers)
            return response.status, await response.text(), dict(response.headers)


async def a_person(running: Running, role: str = "owner", name: str | None = None) -> Person:
    """Return a signed-in person with this role whose language is English."""
    person_id, session = await running.live.database.write(
        sign_in, name or f"{role} {len(role)}", role
    )
    return Person(person_id, running, session)


async def with_password(running: Running, role: str = "owner", name: str | None = None) -> Person:
    """Return a signed-in person whose password is PASSWORD."""
    person = await a_person(running, role, name)
    await running.live.database.write(set_password, person.id, HASH)
    return person


async def an_account(running: Running, name: str = "Yasmine", role: str = "owner") -> str:
    """Create an account with PASSWORD that is not signed in. Return its id."""

    def make(tx: Transaction) -> str:
        staff_id = create_staff(tx, name, role).staff_id
        set_password(tx, staff_id, HASH)
        return staff_id

    return await running.live.database.write(make)


def sign_in(
    tx: Transaction, name: str, role: str, language: str = "en"
) -> tuple[str, OpenedSession]:
    """Create a signed-in person. Return (id, session)."""
    staff_id = create_staff(tx, name, role).staff_id
    set_password(tx, staff_id, "none that fits")
    row = {"id": staff_id, "language": language}
    tx.execute("UPDATE staff SET language = :language WHERE id = :id", row)
    return staff_id, start_session(tx, staff_id, None, "Firefox, Linux")


def keeps_settings(running: Running) -> None:
    """Let the portal store settings, as in every box except the demo."""
    file = running.box.directory.settings_file
    (file.parent / "secrets").mkdir(exist_ok=True)
    running.box.save_settings = lambda changes: save_settings(file, changes, {})
