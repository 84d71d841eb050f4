"""Time budgets for symbolic attempts: what overruns is stopped, and the caller takes another way."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

#: how often the stop is repeated, should the computation have swallowed it
_REPEAT = 0.2


class OverBudget(BaseException):
    """Raised inside a computation that overruns; not an Exception, so that broad handlers let it pass."""


def within(seconds: float, compute: Callable[[], Result], otherwise: Result) -> tuple[Result, bool]:
    """Run ``compute`` for at most ``seconds``; returns (its result, True), or (``otherwise``, False).

    The stop reaches Python code between two bytecodes; a single long call into C ends first. Exceptions
    of ``compute`` itself pass through. Budgets may be nested.

    Examples
    --------
    >>> within(1.0, lambda: 6 * 7, 0)
    (42, True)
    >>> def forever():
    ...     while True:
    ...         pass
    >>> within(0.05, forever, None)
    (None, False)
    """
    if seconds <= 0:
        return otherwise, False
    watch = _Watch(seconds)
    result, finished = otherwise, False
    try:
        watch.start()
        result = compute()
        finished = True
    except watch.stop:
        pass
    finally:
        watch.close()
    return result, finished


class _Watch:
    """Sends a stop of its own class to the thread that made it, again and again until it is closed."""

    def __init__(self, seconds: float) -> None:
        self.stop = type("Stop", (OverBudget,), {})
        self._seconds = seconds
        self._target = ctypes.c_ulong(threading.get_ident())
        self._lock = threading.Lock()
        self._over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="spikesym-budget").start()

    def _run(self) -> None:
        wait = self._seconds
        while not self._over.wait(wait):
            with self._lock:
                if self._over.is_set():
                    return
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, ctypes.py_object(self.stop))
            wait = _REPEAT

    def close(self) -> None:
        """End the watch; no stop arrives after this, not even one that was sent and is still pending."""
        while True:
            try:
                with self._lock:
                    self._over.set()
                    # takes back what is pending; an enclosing budget whose stop this was repeats it
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, None)
                return
            except self.stop:
                continue
