"""What a door tells its user when something cannot be done: the field, the problem and the remedy."""


class CommandError(Exception):
    """Bad input. Nothing was done; or, where it says so, only what it names.

    exit_code: what the CLI returns.
    """

    exit_code = 2

    def __init__(self, message: str, field: str, remedy: str) -> None:
        super().__init__(f"{field}: {message}; {remedy}" if remedy else f"{field}: {message}")
        self.message = message
        self.field = field
        self.remedy = remedy


class Missing(CommandError):  # noqa: N818 - an answer, not a failure
    """What is named is not there."""


class NotRunning(CommandError):  # noqa: N818 - a state of the world
    """A server that the command needs does not answer."""

    exit_code = 3


class Conflict(CommandError):  # noqa: N818 - a state of the world
    """What is asked for contradicts what is there."""

    exit_code = 1
