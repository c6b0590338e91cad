"""When the reply to a publication leaves open whether the post was inserted."""

from citeloop.channels.errors import ChannelError, Fault

_SERVICE_UNAVAILABLE = 503


def in_doubt(error: ChannelError) -> ChannelError:
    """`error` as it is where the post was certainly not inserted, else UNKNOWN: look up before anything else.

    Certain are: never connected, 3xx, 4xx, and a 503 that names a delay (maintenance answers before any work).
    """
    if not _unclear(error):
        return error
    return ChannelError(
        Fault.UNKNOWN,
        f"may have been published: {error.message}",
        delay=error.delay,
        status=error.status,
        request_id=error.request_id,
        sent=error.sent,
    )


def _unclear(error: ChannelError) -> bool:
    if error.status is None:
        return error.sent
    if error.status == _SERVICE_UNAVAILABLE and error.delay is not None:
        return False
    return error.status >= 500 or 200 <= error.status < 300  # noqa: PLR2004 - server errors, and unreadable success
