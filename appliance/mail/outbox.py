"""The outbox to look at: any letter as it would be received."""

import asyncio
from email.message import EmailMessage

from appliance.environment import Environment
from appliance.mail.composing import Composer
from appliance.mail.contents import read_contents


async def render_letter(environment: Environment, letter_id: str) -> EmailMessage:
    """The letter as it would be received, kept and sent ones too; NotFound when there is none."""
    contents = await environment.database.read(read_contents, environment, letter_id)
    composer = Composer(environment.settings.mail.sender)
    return await asyncio.to_thread(composer.compose, contents)
