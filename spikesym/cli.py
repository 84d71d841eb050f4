"""The command line: options to a model, a command to its Python call, an object to text, JSON or LaTeX.

No heavy import at the top: ``--version``, ``--help`` and most refusals answer before SymPy is loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from . import __version__
from .errors import InputError, SpikesymError
from .model import Model, exact_integer, exact_number

#: options whose value may begin with a minus sign, as in ``--link -s``
_EXPRESSION_OPTIONS = ("--link", "--activation", "--set")
_MODEL_FIELDS = (
    "link", "activation", "d", "n", "m", "eta", "eta0", "zeta",
    "noise_var", "readout_scale", "readout", "init", "residual",
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message, self.prog, f"see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (0 done, 1 a check failed, 2 the input is wrong).

    Examples
    --------
    >>> main(["--version"])
    spikesym 0.1.0
    0
    >>> main(["derive", "-d", "0"])
    2
    """
    try:
        return _run(sys.argv[1:] if argv is None else list(argv))
    except SystemExit as stop:  # argparse's --help and --version
        return int(stop.code or 0)
    except SpikesymError as error:
        print(f"spikesym: error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("spikesym: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader (head, less) went away: nothing is wrong, but Python must not complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if os.environ.get("SPIKESYM_DEBUG"):
            raise
        text = " ".join(str(error).split())[:300]
        print(
            f"spikesym: internal error: {type(error).__name__}: {text}; this is a fault of spikesym, "
            "please report it with the command (SPIKESYM_DEBUG=1 shows the traceback)",
            file=sys.stderr,
        )
        return 1


def _run(argv: list[str]) -> int:
    arguments = build_parser().parse_args(_join_expressions(argv))
    digits = exact_integer(arguments.digits, "--digits", 1)
    if digits > 1000:
        raise InputError(f"must be at most 1000, got {digits}", "--digits", "ask for fewer digits")
    arguments.digits = digits
    arguments.seed = exact_integer(arguments.seed, "--seed", 0)
    if getattr(sys, "set_int_max_str_digits", None) and arguments.command == "spectrum":
        # multiplicities are exact integers of any length
        sys.set_int_max_str_digits(0)
    status: int = arguments.run(arguments)
    sys.stdout.flush()
    return status


def _join_expressions(argv: list[str]) -> list[str]:
    """Write ``--link -s`` as ``--link=-s``, which argparse would otherwise take for an option."""
    joined: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word in _EXPRESSION_OPTIONS:
            value = next(rest, None)
            joined.append(word if value is None else f"{word}={value}")
        else:
            joined.append(word)
    return joined


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="spikesym",
        description="The calculus of one large gradient step: derive, evaluate and verify.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"spikesym {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(run=run)
        _add_output_options(sub)
        return sub

    sub = command("derive", _derive, "A and B: formulas and values, exact at finite size")
    _add_model_options(sub)
    sub.add_argument("--order", default="2", metavar="R", help="order of the expansion in 1/d (default 2)")

    sub = command("kernel", _kernel, "k0, k1 and the expansion of k1 in B")
    _add_model_options(sub)
    sub.add_argument("--order", default="1", metavar="P", help="order of the expansion in B (default 1)")
    sub.add_argument("--A", metavar="X", help="A, in place of the model's value")
    sub.add_argument("--B", metavar="Y", help="B, in place of the model's value")
    sub.add_argument("--at", metavar="FILE.npz", help="evaluate at the arrays X, Y (and w) of this file")

    sub = command("spectrum", _spectrum, "eigenvalues and eigenfunctions of k1")
    _add_model_options(sub)
    sub.add_argument("--A", metavar="X", help="A, in place of the model's value")
    sub.add_argument("--B", metavar="Y", help="B, in place of the model's value")
    sub.add_argument("--degrees", default="8", metavar="L", help="largest harmonic degree (default 8)")
    sub.add_argument("--sectors", default="2", metavar="S", help="number of sectors (default 2)")

    sub = command("simulate", _simulate, "train networks by one step and estimate A, A + B")
    _add_model_options(sub)
    sub.add_argument("--reps", default="100", metavar="R", help="independent networks (default 100)")
    sub.add_argument("--memory", metavar="SIZE", help="bound of the arrays of a training step, such as 2GiB")

    sub = command("verify", _verify, "run the checks of every registered statement")
    sub.add_argument("--level", choices=("fast", "full"), default="fast")
    sub.add_argument("--only", nargs="+", metavar="ID", help="statements to check (default: all)")
    sub.add_argument("--list", action="store_true", help="list the statements and stop")

    sub = command("report", _report, "everything for one model, in a folder: page, formulas, figures, JSON")
    _add_model_options(sub)
    sub.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    sub.add_argument("--reps", default="100", metavar="R", help="independent networks (default 100)")
    return parser


def _add_output_options(sub: argparse.ArgumentParser) -> None:
    form = sub.add_mutually_exclusive_group()
    form.add_argument("--text", dest="form", action="store_const", const="text", help="text (the default)")
    form.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON document")
    form.add_argument("--latex", dest="form", action="store_const", const="latex", help="LaTeX")
    sub.set_defaults(form="text")
    sub.add_argument("--digits", default="15", metavar="N", help="decimal digits printed (default 15)")
    sub.add_argument("--seed", default="0", metavar="INT", help="root seed of anything random (default 0)")


def _add_model_options(sub: argparse.ArgumentParser) -> None:
    group = sub.add_argument_group("model")
    add = group.add_argument
    add("--link", metavar="EXPR", help='link g(s): a name or an expression such as "s + he2(s)/sqrt(2)"')
    add("--activation", metavar="EXPR", help="activation, in z (default relu)")
    add("--set", action="append", metavar="NAME=X", help="value of a free parameter of an expression")
    add("-d", metavar="INT", help="input dimension")
    add("-n", metavar="INT", help="samples in the gradient step")
    add("-m", metavar="INT", help="hidden neurons")
    add("--eta", metavar="X", help="step size")
    add("--eta0", metavar="X", help="with --zeta: eta = eta0 * d**zeta")
    add("--zeta", metavar="Z", help="exponent of the step size")
    add("--noise-var", metavar="X", help="tau^2, label noise (default 0)")
    add("--readout-scale", metavar="X", help="varsigma (default 1)")
    add("--readout", metavar="LAW", help="gaussian (default) or rademacher")
    add("--init", metavar="LAW", help="gaussian (default) or sphere")
    add("--residual", metavar="MODE", help="full (default) or labels")


def _model(arguments: argparse.Namespace) -> Model:
    given = {name: getattr(arguments, name) for name in _MODEL_FIELDS if getattr(arguments, name) is not None}
    parameters: dict[str, str] = {}
    for item in arguments.set or ():
        name, equals, value = item.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise InputError(f"not NAME=VALUE: {item!r}", "--set", "write it as --set a=2")
        if name in parameters:
            raise InputError(f"{name!r} is given twice", "--set", "give each parameter once")
        parameters[name] = value
    return Model(**given, parameters=parameters)  # type: ignore[arg-type]


def _print(result: Any, arguments: argparse.Namespace) -> None:
    if arguments.form == "json":
        print(json.dumps(result.to_json(arguments.digits), indent=1, allow_nan=False, ensure_ascii=False))
    elif arguments.form == "latex":
        print(result.latex())
    else:
        print(result.text(arguments.digits))


def _number(arguments: argparse.Namespace, name: str) -> Any:
    value = getattr(arguments, name)
    return None if value is None else exact_number(value, f"--{name}")


def _derive(arguments: argparse.Namespace) -> int:
    model = _model(arguments)
    order = exact_integer(arguments.order, "--order", 0)
    from .api.derive import derive

    _print(derive(model, digits=arguments.digits, order=order), arguments)
    return 0


def _kernel(arguments: argparse.Namespace) -> int:
    model = _model(arguments)
    order = exact_integer(arguments.order, "--order", 0)
    A, B = _number(arguments, "A"), _number(arguments, "B")
    from .api.kernel import kernel

    _print(kernel(model, order=order, A=A, B=B, at=arguments.at), arguments)
    return 0


def _spectrum(arguments: argparse.Namespace) -> int:
    model = _model(arguments)
    A, B = _number(arguments, "A"), _number(arguments, "B")
    degrees = exact_integer(arguments.degrees, "--degrees", 0)
    sectors = exact_integer(arguments.sectors, "--sectors", 1)
    from .api.spectrum import spectrum

    result = spectrum(model, A=A, B=B, degrees=degrees, sectors=sectors, digits=arguments.digits)
    _print(result, arguments)
    return 0


def _simulate(arguments: argparse.Namespace) -> int:
    model = _model(arguments)
    reps = exact_integer(arguments.reps, "--reps", 2)
    model.require_sizes()
    from .api.simulate import simulate

    memory: dict[str, Any] = {} if arguments.memory is None else {"memory": _bytes(arguments.memory)}
    result = simulate(model, reps=reps, seed=arguments.seed, **memory)
    _print(result, arguments)
    return 0 if result.ok else 1


def _bytes(text: str) -> int:
    """A size such as 2GiB, 500MB or 1e9 in bytes."""
    units = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
    number = text.strip().rstrip("BIKMGbikmg")
    unit = text.strip()[len(number) :].upper()
    if unit not in units:
        raise InputError(f"unknown unit in {text!r}", "--memory", "write it as 500MB or 2GiB")
    size = int(exact_number(number, "--memory") * units[unit])
    if size <= 0:
        raise InputError(f"must be positive, got {text!r}", "--memory", "write it as 500MB or 2GiB")
    return size


def _verify(arguments: argparse.Namespace) -> int:
    from .api.verify import catalogue, verify

    if arguments.list:
        print(catalogue())
        return 0
    result = verify(level=arguments.level, only=arguments.only, seed=arguments.seed)
    _print(result, arguments)
    return 1 if result.failed else 0


def _report(arguments: argparse.Namespace) -> int:
    model = _model(arguments)
    reps = exact_integer(arguments.reps, "--reps", 2)
    from .api.report import report

    result = report(arguments.out, model, reps=reps, digits=arguments.digits, seed=arguments.seed)
    _print(result, arguments)
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
