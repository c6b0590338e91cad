"""What can go wrong in the store, without a driver's words: those may hold addresses and passwords."""


class NotFound(LookupError):  # noqa: N818 - an answer, not a failure
    """One line that names what was looked for."""


class StoreUnavailable(ConnectionError):  # noqa: N818 - a state, not a mistake
    """Postgres does not answer, is starting or shutting down, or cut the connection: try again later."""
