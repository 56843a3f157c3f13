"""Whether letters to guests go out, for pages that promise one."""

from appliance.environment import Environment


def letters_leave(environment: Environment) -> bool:
    """Whether a letter that is written now goes out; into the test environment's own outbox too.

    Where no mail server is set letters wait until there is one.
    """
    return environment.name == "test" or bool(environment.settings.mail.host)
