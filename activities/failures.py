"""The one place where a ChannelError becomes Temporal's ApplicationError."""

from datetime import timedelta

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from citeloop.channels.errors import ChannelError, Fault
from citeloop.models.throttling import Cause

BROKEN = "broken"
"""The faults this stage allows one channel are spent: the plan's next channel takes over."""

CHANNEL_GONE = "channel_gone"


def limited(message: str, delay: timedelta, *, kind: str = Fault.RATE_LIMITED) -> ApplicationError:
    """A limit to wait for: benign, never counted, tried again after `delay`."""
    return ApplicationError(message, type=kind, next_retry_delay=delay, category=ApplicationErrorCategory.BENIGN)


def fault(error: ChannelError, *, spent: bool) -> ApplicationError:
    """An ordinary fault: tried again after the provider's delay or the plan's backoff, unless the count is `spent`."""
    if spent and not error.fault.final:
        return ApplicationError(f"{error.message} (the last of the allowed faults)", type=BROKEN, non_retryable=True)
    return ApplicationError(
        error.message, type=error.fault, non_retryable=error.fault.final, next_retry_delay=error.delay
    )


def moved_on(error: ChannelError) -> ApplicationError:
    """The channel itself is out of order and the plan has another: leave this one to its operator."""
    return ApplicationError(error.message, type=error.fault, non_retryable=True)


def passed_on(cause: Cause, reason: str) -> ApplicationError:
    """Work that waits for a channel without money or key, or with an open breaker, goes to the plan's next one."""
    if cause is Cause.BREAKER:
        return ApplicationError(f"its breaker is open: {reason}", type=BROKEN, non_retryable=True)
    return ApplicationError(f"it is paused: {reason}", type=cause, non_retryable=True)


def gone(channel: str) -> ApplicationError:
    return ApplicationError(f"channel {channel} is no longer in channels.toml", type=CHANNEL_GONE, non_retryable=True)
