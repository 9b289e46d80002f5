"""Things that several threads need, and one of them makes."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Once(Generic[_K, _V]):
    """Things by their keys. Who needs one that another thread makes waits for that one alone."""

    made: dict[_K, _V] = field(default_factory=dict, init=False)
    _locks: dict[_K, threading.Lock] = field(default_factory=dict, init=False)

    def get(self, key: _K, make: Callable[[], _V]) -> _V:
        """What was made for a key, or is made now. Raises as `make`: then it is not made."""
        if key not in self.made:
            with self._locks.setdefault(key, threading.Lock()):
                if key not in self.made:
                    self.made[key] = make()
        return self.made[key]
