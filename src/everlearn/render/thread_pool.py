"""Parallel loops on a persistent thread pool."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from everlearn.core.validate import check_int

_MIN_PIXELS = 1 << 20  # less work than this is not worth another thread or chunk
_CHUNKS_PER_THREAD = 4


def parallel_for(
    work: Callable[[int, int], object], count: int, pixels: int, threads: int | None
) -> None:
    """Call work(low, high) on chunks of 0 .. count, with as many threads as `pixels` of work justify."""
    if threads is not None:
        check_int(threads, "threads", 1, 1024)
    workers = min(threads or available_cores(), max(1, pixels // _MIN_PIXELS), max(count, 1))
    if workers == 1:
        work(0, count)
        return
    # More chunks than threads, so that a thread slowed down by other processes does fewer of them.
    chunks = min(_CHUNKS_PER_THREAD * workers, max(workers, pixels // _MIN_PIXELS))
    bounds = np.linspace(0, count, chunks + 1).astype(int).tolist()
    list(_thread_pool(os.getpid(), workers).map(work, bounds[:-1], bounds[1:]))


@lru_cache(maxsize=1)
def _thread_pool(process: int, count: int) -> ThreadPoolExecutor:
    """Return a pool that is kept, since new threads start slowly; a forked process gets its own."""
    return ThreadPoolExecutor(count, thread_name_prefix=f"everlearn-{process}")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
