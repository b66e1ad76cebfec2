"""Share work among threads that stay."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from everlearn.border import check_whole

_FEWEST_PIXELS = 1 << 20  # a thread or a part of its work is worth no less
_PARTS = 4


def in_parts(
    work: Callable[[int, int], object], count: int, effort: int, threads: int | None
) -> None:
    """Call work(low, high) over 0 .. count, on as many threads as its effort, in pixels, is worth."""
    if threads is not None:
        check_whole(threads, "threads", 1, 1024)
    wanted = min(threads or usable_cores(), max(1, effort // _FEWEST_PIXELS), max(count, 1))
    if wanted == 1:
        work(0, count)
        return
    # More parts than threads: one that is slowed down by other work does less.
    parts = min(_PARTS * wanted, max(wanted, effort // _FEWEST_PIXELS))
    bounds = np.linspace(0, count, parts + 1).astype(int).tolist()
    list(_threads(os.getpid(), wanted).map(work, bounds[:-1], bounds[1:]))


@lru_cache(maxsize=1)
def _threads(process: int, count: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones may start late, on a busy core. A forked process has its own."""
    return ThreadPoolExecutor(count, thread_name_prefix=f"everlearn-{process}")


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
