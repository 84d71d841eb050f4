"""Time budgets for symbolic attempts: what overruns is stopped, and the caller takes another way."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
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
    _require_thread()
    watch = _Watch(seconds)
    try:
        try:
            _new.put(watch)
            result = compute()
        finally:
            watch.close()
    except OverBudget as stop:
        # it may have come on the way into close()
        watch.close()
        if not isinstance(stop, watch.stop):
            raise  # an enclosing budget's
        return otherwise, False
    return result, True


class _Watch:
    """A deadline, and a stop of its own class for the thread that made it, repeated until it is closed.

    Only operations that are single calls into C touch what the two threads share: a stop that arrives in the
    middle of Python's own conditions and events would leave their locks held.
    """

    def __init__(self, seconds: float) -> None:
        self.stop: type[OverBudget] = type("Stop", (OverBudget,), {})
        self.deadline = time.monotonic() + seconds
        self.over = False
        self._target = ctypes.c_ulong(threading.get_ident())
        self._lock = threading.Lock()

    def fire(self) -> None:
        """Send the stop, unless the watch is closed."""
        with self._lock:
            if not self.over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, ctypes.py_object(self.stop))

    def close(self) -> None:
        """End the watch; no stop arrives after this, not even one that was sent and is still pending."""
        enclosing: OverBudget | None = None
        while True:
            try:
                with self._lock:
                    self.over = True
                    # takes back what is pending; an enclosing budget whose stop this was repeats it
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, None)
                break
            except OverBudget as stop:
                if not isinstance(stop, self.stop):
                    enclosing = stop
        if enclosing is not None:
            raise enclosing


_new: queue.SimpleQueue[_Watch] = queue.SimpleQueue()
_starting = threading.Lock()
_thread: threading.Thread | None = None


def _require_thread() -> None:
    """One thread watches all budgets; it is started again in a forked process.

    A thread for each budget would not do: CPython gives a thread that is being born the identity of the one that
    makes it, so that the stop of an enclosing budget could hit the new thread and leave its maker waiting for ever.
    """
    global _thread
    if _thread is None or not _thread.is_alive():
        with _starting:
            if _thread is None or not _thread.is_alive():
                _thread = threading.Thread(target=_watch_all, daemon=True, name="spikesym-budgets")
                _thread.start()


def _watch_all() -> None:
    active: list[_Watch] = []
    while True:
        try:
            wait = max(0.0, min(w.deadline for w in active) - time.monotonic()) if active else None
            active.append(_new.get(timeout=wait))
        except queue.Empty:
            pass
        active = [w for w in active if not w.over]
        now = time.monotonic()
        for watch in active:
            if watch.deadline <= now:
                watch.fire()
                watch.deadline = now + _REPEAT
