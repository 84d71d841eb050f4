"""spikesym: the calculus of one large gradient step.

The commands of the command line are functions here, with the same names and parameters:
:func:`derive`, :func:`kernel`, :func:`spectrum`, :func:`simulate`, :func:`verify`, :func:`report`.
Each returns a documented object. Everything is imported on first use, so ``import spikesym`` is immediate.

Examples
--------
>>> import spikesym
>>> result = spikesym.derive(spikesym.Model(link="relu", d=60, n=120, m=90, eta=120))
>>> result.A["exact"].value.text(15)
'1.25591750754041'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.derive import derive as derive
    from .api.kernel import kernel as kernel
    from .api.report import report as report
    from .api.simulate import simulate as simulate
    from .api.spectrum import spectrum as spectrum
    from .api.verify import verify as verify
    from .errors import (
        CertificationError as CertificationError,
    )
    from .errors import (
        InputError as InputError,
    )
    from .errors import (
        NotIntegrableError as NotIntegrableError,
    )
    from .errors import (
        ParseError as ParseError,
    )
    from .errors import (
        SpikesymError as SpikesymError,
    )
    from .gaussian import gaussian_data as gaussian_data
    from .model import Model as Model

__version__ = "0.1.0"

_HOME = {
    "Model": "model",
    "SpikesymError": "errors",
    "InputError": "errors",
    "ParseError": "errors",
    "NotIntegrableError": "errors",
    "CertificationError": "errors",
    "gaussian_data": "gaussian",
    "derive": "api.derive",
    "kernel": "api.kernel",
    "spectrum": "api.spectrum",
    "simulate": "api.simulate",
    "verify": "api.verify",
    "report": "api.report",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spikesym' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
