"""One error for everything that can go wrong outside, sorted by what is to be done about it."""

from datetime import timedelta
from enum import StrEnum


class Fault(StrEnum):
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    GARBLED = "garbled"
    REFUSED = "refused"
    """Content policy: the next channel, or a person."""
    EXHAUSTED = "exhausted"
    """Money or quota: pause the channel, tell the operator, keep the work. With a delay it ends by itself."""
    UNAUTHORIZED = "unauthorized"
    INVALID = "invalid"
    """Our fault; the same call will never pass."""
    UNKNOWN = "unknown"
    """A mutation whose reply was lost: look up before anything else."""

    @property
    def waits(self) -> bool:
        """Whether it is a limit to wait for, which never counts as a fault."""
        return self in {Fault.RATE_LIMITED, Fault.EXHAUSTED, Fault.UNAUTHORIZED}

    @property
    def final(self) -> bool:
        return self in {Fault.REFUSED, Fault.INVALID}


class Remedy(StrEnum):
    """What is to be done, where the fault alone does not tell."""

    RETRY_FAST = "retry_fast"
    """The same call usually passes at once; at most twice."""
    POLL = "poll"
    CONTINUE_TURN = "continue_turn"
    """The model waits for us to go on: a tool's result, or its own text sent back."""
    RESUBMIT = "resubmit"
    """The task is gone; a new one must be given."""
    REFRESH_TOKEN = "refresh_token_retry_once"  # noqa: S105 - a remedy
    DISABLE_ENDPOINT = "disable_endpoint"


class ChannelError(Exception):
    """A failed call, classified where status and body were seen.

    message: one line for the operator; never a key, a header value or more than 300 characters of body.
    delay: how long the provider asked us to wait, if it did.
    until: by which word of the provider `delay` was found (`next_day`), where it named no number of seconds.
    sent: no reply came although some of the request had left; a mutation may have happened.
    change: what to change before the call can pass (`shorten_input`, `max_completion_tokens`), if that is known.
    """

    def __init__(
        self,
        fault: Fault,
        message: str,
        *,
        delay: timedelta | None = None,
        until: str = "",
        status: int | None = None,
        request_id: str = "",
        sent: bool = False,
        change: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
        self.delay = delay
        self.until = until
        self.status = status
        self.request_id = request_id
        self.sent = sent
        self.change = change
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.fault}: {self.message}"
