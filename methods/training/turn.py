"""Turn: one process at a time makes what is kept in the cache; another one that wants the same waits, and finds it.

The lock is the operating system's and dies with its process, so nothing has to be cleaned up after a kill.  Without it
two runs that share a recipe would delete each other's checkpoints and mix their weights.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError

LOCK = ".lock"
LOOK_S = 0.2


@contextmanager
def turn(folder: Path, what: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the only right to write `folder`; waits for it, and says so.

    Args:
        folder: made when it is not there.
        what: what is made there, such as `webshop/comparator`.
        say: where the line about waiting goes.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written ({error.strerror}), so {what} cannot be made there. "
            "Name another cache with COTA_BENCH_CACHE."
        ) from error
    try:
        if not _taken(handle):
            say(f"{what}: another process is making it; waiting for that one (Ctrl-C stops the waiting)")
            while not _taken(handle):
                time.sleep(LOOK_S)  # and not in the lock call, which would not hear Ctrl-C
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
