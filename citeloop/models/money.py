from citeloop.models.record import Record


class Money(Record):
    """An amount in millionths of its currency: 1_500_000 CNY micros are ¥1.50. Never a float."""

    micros: int = 0
    currency: str = "CNY"
