"""What a forked process makes anew: the threads of its parent are not there, and a lock may be held by one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=Callable[[], object])


def after_fork(call: C) -> C:
    """Have something called in every child that this process forks; Windows has no forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)
    return call
