"""One attempt to send one letter, from its row to the mail server's answer."""

import asyncio
from email.message import EmailMessage
from typing import Protocol

from appliance.environment import Environment
from appliance.mail.composing import Composer, UnusableAddress, read_contents
from appliance.mail.smtp import Undelivered
from appliance.model.letter import SETTINGS_TROUBLE, Outcome


class MailServer(Protocol):
    """Where letters are handed over, one at a time."""

    async def send(self, message: EmailMessage) -> None:
        """Returns once the server has taken the letter; Undelivered when it has not."""

    def part(self) -> None:
        """Nothing more is handed over for now."""


async def send_letter(
    environment: Environment, composer: Composer, server: MailServer, letter_id: str
) -> Outcome:
    """What became of it. Raises nothing but the caller's own cancellation."""
    try:
        await server.send(await _written(environment, composer, letter_id))
    except Undelivered as undelivered:
        outcome = undelivered.outcome
    except UnusableAddress:
        outcome = Outcome("refused", "the address cannot be used")
    except Exception as error:  # noqa: BLE001 - a letter is never forgotten
        outcome = Outcome("deferred", f"our own fault: {type(error).__name__}")
    else:
        outcome = Outcome("accepted")
    return outcome


async def _written(environment: Environment, composer: Composer, letter_id: str) -> EmailMessage:
    """The letter, composed in a thread; Undelivered when it should not be sent (any more)."""
    contents = await environment.database.read(read_contents, environment, letter_id)
    if contents.moot is not None:
        raise Undelivered(Outcome("refused", contents.moot))
    if not composer.has_sender:
        trouble = f"{SETTINGS_TROUBLE}mail.sender is not an address"
        raise Undelivered(Outcome("unreachable", trouble))
    return await asyncio.to_thread(composer.compose, contents)
