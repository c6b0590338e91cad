"""What never changes in the store, once read: brands by revision, frozen measuring plans."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """The `size` values used last, by tenant and id; a tenant finds no other's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[tuple[str, str], Value] = OrderedDict()

    async def get(self, tenant_id: str, value_id: str, read: Callable[[], Awaitable[Value]]) -> Value:
        key = (tenant_id, value_id)
        if key not in self._values:
            self._values[key] = await read()
            if len(self._values) > self._size:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]
