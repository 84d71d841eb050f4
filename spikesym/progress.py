"""Progress bars: on stderr, and only where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], description: str, total: int | None = None) -> Iterable[T]:
    """Iterate with a progress bar and the time left; without a terminal, just iterate.

    Examples
    --------
    >>> list(progress(range(3), "counting"))
    [0, 1, 2]
    """
    if not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return tqdm(items, desc=description, total=total, file=sys.stderr, leave=False)


class Stages:
    """A bar over named stages of one long job; see :func:`stages`."""

    def __init__(self, total: int) -> None:
        self._bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                file=sys.stderr,
                leave=False,
                bar_format="{desc:<32} {bar:30} {elapsed} left {remaining}",
            )

    def start(self, name: str) -> None:
        """Show the name of the stage that begins now."""
        if self._bar is not None:
            self._bar.set_description_str(name)
            self._bar.refresh()

    def done(self, weight: int = 1) -> None:
        """Count a stage (of this weight) as finished."""
        if self._bar is not None:
            self._bar.update(weight)

    def close(self) -> None:
        """Clear the bar."""
        if self._bar is not None:
            self._bar.close()


@contextmanager
def stages(total: int) -> Iterator[Stages]:
    """A bar for a job whose stages have weights that add up to ``total``."""
    bar = Stages(total)
    try:
        yield bar
    finally:
        bar.close()
