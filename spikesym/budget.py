"""Time budgets for symbolic attempts: what overruns is stopped, and the caller takes another way."""

from __future__ import annotations

import ctypes
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

    class Stop(OverBudget):
        pass

    target = threading.get_ident()
    finished = threading.Event()
    lock = threading.Lock()
    fired = False

    def watch() -> None:
        nonlocal fired
        wait = seconds
        while not finished.wait(wait):
            with lock:
                if finished.is_set():
                    return
                fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target), ctypes.py_object(Stop))
            wait = _REPEAT

    watcher = threading.Thread(target=watch, daemon=True, name="spikesym-budget")
    watcher.start()
    try:
        try:
            result = compute()
        finally:
            with lock:
                finished.set()
            if fired:
                # a stop that is still pending must arrive here and not in the caller's code
                deadline = time.monotonic() + 0.05
                while time.monotonic() < deadline:
                    time.sleep(0.001)
    except Stop:
        return otherwise, False
    finally:
        finished.set()
    return result, True
