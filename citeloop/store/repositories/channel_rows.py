"""How the fleet's channels stand: the one place that knows which limit holds, and whose it is."""

from datetime import date, datetime
from fractions import Fraction

from citeloop.models.money import Money
from citeloop.models.record import Record
from citeloop.models.throttling import Cause
from citeloop.store.database import OperatorScope
from citeloop.store.repositories import rates
from citeloop.store.statements import text

_ROWS = text("""
SELECT c.name, c.roles, c.queue, c.rate, c.operator_rate, c.adaptive_rate, c.burst, c.calls_per_dispatch,
       coalesce(c.operator_concurrency, c.concurrency) AS concurrency, c.operator_concurrency,
       c.paused, c.pause_cause, c.pause_reason, c.vanished,
       CASE WHEN c.hold_until > clock_timestamp() THEN c.hold_until END AS hold_until, c.hold_reason,
       CASE WHEN c.quota_until > clock_timestamp() THEN c.quota_until END AS quota_until, c.quota_reason,
       c.quota_cause,
       c.breaker_until, coalesce(c.breaker_until <= clock_timestamp(), false) AS half_open, c.breaker_reason,
       c.tokens_per_minute, c.calls_per_day, c.tokens_per_day,
       coalesce(n.calls, 0) AS calls, coalesce(n.limited, 0) AS limited, coalesce(n.faults, 0) AS faults,
       n.last_call_at,
       (SELECT coalesce(sum(s.calls), 0)::bigint FROM channel_stretches s
        WHERE s.name = c.name AND s.began_at > clock_timestamp() - interval '60 s') AS calls_last_minute,
       (SELECT coalesce(sum(t.tokens), 0)::bigint FROM channel_takings t
        WHERE t.name = c.name AND t.at > clock_timestamp() - interval '60 s') AS tokens_last_minute,
       coalesce(d.calls, 0) AS calls_of_quota, coalesce(d.tokens, 0) AS tokens_of_quota
FROM channels c LEFT JOIN channel_counts n ON n.name = c.name LEFT JOIN channel_days d ON d.name = c.name
ORDER BY c.name
""")
_SPEND = text("SELECT channel, currency, cost_micros FROM citeloop_channel_spend(:day) ORDER BY channel, currency")


class ChannelRow(Record):
    """Rates are calls per second for the whole fleet; None is none set, 0 is stopped."""

    name: str
    roles: tuple[str, ...]
    queue: str
    rate: Fraction | None
    """From channels.toml, per second; None is unlimited."""
    operator_rate: Fraction | None
    """Set by a person; None: the file's."""
    adaptive_rate: Fraction | None
    """Cut after a 429, on its way back; None: none was met lately."""
    burst: int
    calls_per_dispatch: int
    concurrency: int
    """Calls at once of each worker."""
    operator_concurrency: int | None
    """Set by a person; None: the file's."""
    paused: bool
    pause_cause: str
    pause_reason: str
    hold_until: datetime | None
    """Only while it lies ahead."""
    hold_reason: str
    quota_until: datetime | None
    """Only while it lies ahead."""
    quota_reason: str
    quota_cause: str
    """`exhausted` where the provider said so; empty where our own ledger did."""
    breaker_until: datetime | None
    """None: closed."""
    half_open: bool
    """One probe may call, to find out whether the provider has recovered."""
    breaker_reason: str
    tokens_per_minute: int | None
    calls_per_day: int | None
    tokens_per_day: int | None
    vanished: bool
    calls: int
    limited: int
    faults: int
    last_call_at: datetime | None
    calls_last_minute: int
    tokens_last_minute: int
    calls_of_quota: int
    """Since the quota's last reset; 0 for a channel without one."""
    tokens_of_quota: int

    @property
    def effective_rate(self) -> Fraction | None:
        """What may be called per second now; None is unlimited."""
        if self.paused or self.hold_until is not None or self.quota_until is not None or self.breaker_until is not None:
            return Fraction(0)
        return rates.least(rates.own(self.rate, self.operator_rate), self.adaptive_rate)

    @property
    def drains(self) -> bool:
        """Whether waiting work is let through although nothing may be called, to move to its plan's next channel."""
        if rates.own(self.rate, self.operator_rate) == 0 or (self.hold_until is not None and not self.paused):
            return False
        if self.paused or self.quota_until is not None:
            cause = self.pause_cause if self.paused else self.quota_cause
            return cause != "" and Cause(cause).moves_work
        return self.breaker_until is not None

    @property
    def why(self) -> str:
        """Whose limit that is."""
        closed = self._why_closed
        if closed:
            return closed
        if self.adaptive_rate is not None and self.adaptive_rate == self.effective_rate:
            own = rates.own(self.rate, self.operator_rate) or Fraction(0)
            return f"adaptive: cut after a 429, coming back to {float(own):g}/s"
        if self.operator_rate is not None:
            return "set by the operator"
        return "channels.toml" if self.rate is not None else "unlimited"

    @property
    def _why_closed(self) -> str:
        if self.paused:
            return f"paused: {self.pause_reason}"
        if self.operator_rate == 0:
            return "set by the operator"
        if self.hold_until is not None:
            return f"held until {self.hold_until:%H:%M:%S}: {self.hold_reason}"
        if self.quota_until is not None:
            return f"quota: used up until {self.quota_until:%d %b %H:%M} UTC: {self.quota_reason}"
        if self.breaker_until is not None:
            standing = "half open, one probe" if self.half_open else f"open until {self.breaker_until:%H:%M:%S}"
            return f"breaker: {standing}: {self.breaker_reason}"
        return ""


async def rows(op: OperatorScope) -> list[ChannelRow]:
    found = []
    for row in await op.sql.execute(_ROWS):
        values = row._asdict()
        read = {name: rates.read(values[name]) for name in ("rate", "operator_rate", "adaptive_rate")}
        found.append(ChannelRow(**{**values, **read, "roles": tuple(values["roles"])}))
    return found


async def spend(op: OperatorScope, day: date) -> dict[str, tuple[Money, ...]]:
    """By channel: what all tenants together paid on that day (UTC), in each currency."""
    spent: dict[str, tuple[Money, ...]] = {}
    for row in await op.sql.execute(_SPEND, {"day": day}):
        spent[row.channel] = (*spent.get(row.channel, ()), Money(micros=row.cost_micros, currency=row.currency))
    return spent
