"""The package's errors: each one says what is wrong, where, and what to do about it."""

from __future__ import annotations


class SpikesymError(Exception):
    """Base of every error that spikesym raises on purpose.

    ``exit_status`` is what the command line returns for it: 1 for a failed check or computation,
    2 for a wrong input.
    """

    exit_status = 1


class InputError(SpikesymError, ValueError):
    """The input is wrong.

    Parameters
    ----------
    what : str
        What is wrong, in a few words.
    where : str
        The option, field or text that carries the fault.
    remedy : str
        What to do instead.

    Examples
    --------
    >>> print(InputError("must be at least 2, got 0", "-d", "give the input dimension, such as -d 100"))
    -d: must be at least 2, got 0; give the input dimension, such as -d 100
    """

    exit_status = 2

    def __init__(self, what: str, where: str, remedy: str) -> None:
        self.what, self.where, self.remedy = (_one_line(t) for t in (what, where, remedy))
        super().__init__(f"{self.where}: {self.what}; {self.remedy}")

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.what, self.where, self.remedy)


class ParseError(InputError):
    """A link or activation expression that the whitelist parser does not accept."""


class NotIntegrableError(InputError):
    """A Gaussian expectation that the theory needs is infinite or undefined for this function."""


class CertificationError(SpikesymError):
    """A certified number could not be had to the accuracy asked for; the message gives what was reached."""


class PostconditionError(SpikesymError):
    """An algorithm's own check of its result failed; the message gives the measured number."""


def _one_line(text: str, limit: int = 300) -> str:
    """Fold white space and shorten, so that an error stays one line whatever the input was."""
    folded = " ".join(str(text).split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"
