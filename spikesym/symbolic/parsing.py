"""Links and activations from text: a whitelist over Python's ``ast``, never ``eval`` or ``sympify``.

Rationals stay exact (``0.3`` is 3/10). Sizes are bounded before anything is computed: length, nesting,
digits, exponents, degrees and the magnitude of every constant.

Names of the language are in :mod:`~spikesym.symbolic.vocabulary`. ``e`` and ``E`` are refused unless a
value is given for them, because they would be read as exp(1) by some and as a parameter by others.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NoReturn

import sympy
from sympy import Integer, Rational, Symbol

from ..budget import within
from ..errors import InputError
from .bounds import Node, OutOfBounds, checked_degree, checked_value, combined, power, rational_literal
from .symbols import X
from .syntax import checked_text, refuse, syntax_tree
from .vocabulary import (
    BARE,
    CONSTANTS,
    FUNCTIONS,
    GREEK,
    MAX_HERMITE,
    TAKEN,
    VARIABLES,
    HermiteProb,
    hermite_degree,
    hermite_polynomial,
)

MAX_PARAMETERS = 8
_SECONDS = 3.0

_FREE_NAME = re.compile(r"[A-Za-z](_?\d{1,3})?")
_OPERATORS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def parse_expression(
    text: str,
    variable: str,
    *,
    where: str,
    parameters: Mapping[str, Fraction] | None = None,
    allow_parameters: bool = True,
) -> sympy.Expr:
    """The SymPy expression, in the canonical variable ``X``, that ``text`` writes in ``variable``.

    Parameters
    ----------
    text : str
        Such as ``"s + he2(s)/sqrt(2)"``; a function name alone is that function of the variable.
    variable : {"s", "z"}
        The variable declared for this role. ``x`` may be written instead of it, not beside it.
    where : str
        What errors name, such as ``"--link"``.
    parameters : mapping, optional
        Exact values of parameters, put in while parsing.
    allow_parameters : bool
        Whether other single letters and Greek names become real symbols; otherwise they are errors.

    Raises
    ------
    ParseError
        For everything outside the language, in one line with position and remedy, at once.

    Examples
    --------
    >>> parse_expression("s + he2(s)/sqrt(2)", "s", where="--link")
    x + sqrt(2)*(x**2 - 1)/2
    >>> parse_expression("tanh(a*s) + 0.3", "s", where="--link", parameters={"a": Fraction(2)})
    tanh(2*x) + 3/10
    >>> parse_expression("tanhh(s)", "s", where="--link")
    Traceback (most recent call last):
        ...
    spikesym.errors.ParseError: --link: unknown name 'tanhh' at column 1; did you mean tanh?
    """
    kept = parse_keeping_hermite(
        text, variable, where=where, parameters=parameters, allow_parameters=allow_parameters
    )
    return expand_hermite(kept)


def expand_hermite(expr: sympy.Expr) -> sympy.Expr:
    """The expression with every Hermite node written out as a polynomial."""
    if not expr.has(HermiteProb):
        return expr
    return expr.replace(lambda e: isinstance(e, HermiteProb), lambda e: e.doit())


def parse_keeping_hermite(
    text: str,
    variable: str,
    *,
    where: str,
    parameters: Mapping[str, Fraction] | None = None,
    allow_parameters: bool = True,
) -> sympy.Expr:
    """As :func:`parse_expression`, with He_k(u) kept as one node for stable evaluation."""
    check_parameter_names(parameters or {})
    parser = _Parser(text, variable, where, dict(parameters or {}), allow_parameters)
    try:
        expr, done = within(_SECONDS, parser.expression, None)
    except (
        ArithmeticError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        NotImplementedError,
    ) as error:
        if isinstance(error, InputError):
            raise
        # SymPy's own objections, such as a comparison of numbers that are not real
        refuse(where, f"not a real function ({type(error).__name__})", "write it in simpler terms")
    if not done or expr is None:
        refuse(where, f"too complicated: not read within {_SECONDS:g} s", "write it in simpler terms")
    return expr


def check_parameter_names(parameters: Mapping[str, object]) -> None:
    """Refuse parameters that are not identifiers or that carry a name of the language."""
    for name in parameters:
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            raise InputError(f"not a parameter name: {name!r}", "--set", "use letters and digits, as in a=2")
        if name in FUNCTIONS or name in CONSTANTS or name in VARIABLES or hermite_degree(name) is not None:
            raise InputError(f"{name!r} is a name of the language", "--set", "choose another name")


class _Parser:
    """One reading of one text."""

    def __init__(
        self, text: str, variable: str, where: str, parameters: dict[str, Fraction], allow: bool
    ) -> None:
        self.where, self.variable, self.parameters, self.allow = where, variable, parameters, allow
        self.text = checked_text(text, variable, where)
        self.seen_variables: set[str] = set()
        self.free: set[str] = set()

    def fail(self, what: str, remedy: str, node: ast.AST | None = None) -> NoReturn:
        refuse(self.where, what, remedy, node)

    def expression(self) -> sympy.Expr:
        tree = syntax_tree(self.text, self.where)
        if isinstance(tree, ast.Name) and (tree.id in BARE or hermite_degree(tree.id) is not None):
            tree = ast.copy_location(
                ast.Call(tree, [_at(ast.Name(self.variable, ast.Load()), tree)], []), tree
            )
        node = self.visit(tree)
        if node.expr.free_symbols - {X} and X not in node.expr.free_symbols:
            self.fail(f"does not depend on {self.variable}", f"write an expression in {self.variable}")
        if not isinstance(node.expr, sympy.Expr) or node.expr.has(
            sympy.I, sympy.nan, sympy.zoo, sympy.oo, -sympy.oo
        ):
            self.fail("not a real function", "keep to real numbers: no division by 0, no root or log below 0")
        return node.expr

    # ---- expressions ---------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> Node:
        """The value of a subexpression."""
        try:
            return self._visit(node)
        except OutOfBounds as fault:
            self.fail(fault.what, fault.remedy, node)

    def _visit(self, node: ast.AST) -> Node:
        if isinstance(node, ast.Constant):
            return self._rational(rational_literal(self.text[node.col_offset : node.end_col_offset]))
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
            inner = self.visit(node.operand)
            if isinstance(node.op, ast.UAdd):
                return inner
            return Node(-inner.expr, None if inner.value is None else -inner.value, inner.degree)
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Compare | ast.BoolOp):
            self.fail("a condition outside Piecewise", "write Piecewise((s, s > 0), (0, True))", node)
        if isinstance(node, ast.IfExp):
            self.fail("if ... else", "write Piecewise((value, condition), (otherwise, True))", node)
        kind = type(node).__name__
        self.fail(f"{kind} is not part of the language", "write numbers, names, + - * / ** and calls", node)

    def _rational(self, number: Fraction) -> Node:
        return Node(Rational(number.numerator, number.denominator), checked_value(lambda: float(number)), 0)

    def _name(self, node: ast.Name) -> Node:
        name = node.id
        if name == self.variable or name == "x":
            self.seen_variables.add(name)
            if len(self.seen_variables) > 1:
                self.fail(f"both {self.variable} and x", f"write {self.variable} throughout", node)
            return Node(X, None, 1)
        if name in self.parameters:
            return self._rational(self.parameters[name])
        if name in CONSTANTS:
            expr, value = CONSTANTS[name]
            return Node(expr, value, 0)
        if name in VARIABLES:
            self.fail(f"variable {name!r}", f"the variable here is {self.variable}", node)
        if name in FUNCTIONS or hermite_degree(name) is not None:
            self.fail(f"function {name!r} without argument", f"write {name}({self.variable})", node)
        if name in ("e", "E"):
            self.fail(
                f"{name!r} is ambiguous", "write exp(s) or exp(1), or give a parameter by --set e=...", node
            )
        if not self.allow or not (_FREE_NAME.fullmatch(name) or name in GREEK):
            self._unknown(name, node)
        if name in TAKEN:
            self.fail(
                f"the name {name!r} stands for something else in the formulas",
                f"choose another name for the parameter, or give it a value by --set {name}=...",
                node,
            )
        self.free.add(name)
        if len(self.free) > MAX_PARAMETERS:
            self.fail(f"more than {MAX_PARAMETERS} free parameters", "give values by --set", node)
        return Node(Symbol(name, real=True), None, 1)

    def _unknown(self, name: str, node: ast.AST) -> NoReturn:
        known = [*FUNCTIONS, *CONSTANTS, "Piecewise", "he2", *self.parameters]
        close = [n for n in known if n.lower() == name.lower()] or difflib.get_close_matches(
            name.lower(), known, n=1, cutoff=0.6
        )
        other = f"the variable is {self.variable}; give a parameter by --set {name[:20]}=..."
        remedy = f"did you mean {close[0]}?" if close else other
        self.fail(f"unknown name {name[:40]!r}", remedy, node)

    def _operation(self, node: ast.BinOp) -> Node:
        if isinstance(node.op, ast.BitXor):
            self.fail("the operator ^", "write powers with **", node)
        if not isinstance(node.op, ast.Pow) and type(node.op) not in _OPERATORS:
            self.fail(f"the operator {type(node.op).__name__}", "write with + - * / and **", node)
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow):
            return power(left, right, lambda e: e.has(X))
        return combined(left, _OPERATORS[type(node.op)], right)

    # ---- calls ---------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Node:
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self.fail("keyword or starred arguments", "give plain arguments", node)
        if not isinstance(node.func, ast.Name):
            self.fail("a call of something that is not a name", "write a product with *", node)
        name = node.func.id
        if name == "Piecewise":
            return self._piecewise(node)
        degree = hermite_degree(name)
        if degree is not None:
            return self._hermite(degree, node)
        if name not in FUNCTIONS:
            if name == self.variable or name == "x" or name in self.parameters:
                self.fail(f"{name!r} is not a function", "write a product with *", node)
            self._unknown(name, node)
        entry = FUNCTIONS[name]
        arguments = [self.visit(a) for a in node.args]
        if name == "leaky_relu" and len(arguments) == 1 and X not in arguments[0].expr.free_symbols:
            # leaky_relu(0.1) is the function of that slope, as a name would be
            arguments = [Node(X, None, 1), arguments[0]]
        if not entry.least <= len(arguments) <= entry.most:
            wanted = f"{entry.least}" if entry.least == entry.most else f"{entry.least} to {entry.most}"
            self.fail(f"{name} takes {wanted} arguments, got {len(arguments)}", "count the commas", node)
        values = [a.value for a in arguments]
        value = None
        if None not in values:
            value = checked_value(lambda: entry.estimate(*values))
        return Node(entry.build(*[a.expr for a in arguments]), value, max(a.degree for a in arguments))

    def _hermite(self, k: int, node: ast.Call) -> Node:
        if k > MAX_HERMITE:
            self.fail(f"Hermite degree above {MAX_HERMITE}", f"he0 to he{MAX_HERMITE} have names", node)
        if len(node.args) != 1:
            self.fail(f"he{k} takes 1 argument, got {len(node.args)}", f"write he{k}({self.variable})", node)
        argument = self.visit(node.args[0])
        degree = checked_degree(k * argument.degree)
        if argument.value is None:
            return Node(HermiteProb(Integer(k), argument.expr), None, degree)
        # bounded before the polynomial of a number is computed
        checked_value(lambda: (1 + abs(argument.value or 0)) ** k * math.sqrt(math.factorial(min(k, 160))))
        expr = hermite_polynomial(k, argument.expr)
        return Node(expr, checked_value(lambda: float(expr)), 0)

    def _piecewise(self, node: ast.Call) -> Node:
        remedy = "write Piecewise((s, s > 0), (0, True))"
        if not node.args or len(node.args) > 50:
            self.fail(
                "Piecewise without branches" if not node.args else "more than 50 branches", remedy, node
            )
        branches, degree = [], 1
        for pair in node.args:
            if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
                self.fail("a branch that is not (value, condition)", remedy, pair)
            value = self.visit(pair.elts[0])
            branches.append((value.expr, self._condition(pair.elts[1])))
            degree = max(degree, value.degree)
        expr = sympy.Piecewise(*branches)
        if expr.has(sympy.nan):
            self.fail("a Piecewise that leaves gaps", "end it with (value, True)", node)
        return Node(expr, None, degree)

    def _condition(self, node: ast.AST) -> sympy.Basic:
        """A truth value, an inequality, a chain of them, or a combination by and, or, not."""
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return sympy.true if node.value else sympy.false
        if isinstance(node, ast.BoolOp):
            parts = [self._condition(v) for v in node.values]
            return sympy.And(*parts) if isinstance(node.op, ast.And) else sympy.Or(*parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return sympy.Not(self._condition(node.operand))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            parts = [self._condition(node.left), self._condition(node.right)]
            return sympy.And(*parts) if isinstance(node.op, ast.BitAnd) else sympy.Or(*parts)
        if not isinstance(node, ast.Compare):
            self.fail("not a condition", "write an inequality such as s > 0, or True", node)
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        parts = []
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            relation = _RELATIONS.get(type(op))
            if relation is None:
                self.fail("a condition other than < <= > >=", "write an inequality such as s > 0", node)
            compared = relation(left.expr, right.expr)
            # SymPy writes a comparison of a Piecewise as if-then-else
            parts.append(compared.to_nnf() if compared.has(sympy.ITE) else compared)
        return sympy.And(*parts)


_RELATIONS = {ast.Lt: sympy.Lt, ast.LtE: sympy.Le, ast.Gt: sympy.Gt, ast.GtE: sympy.Ge}


def _at(node: ast.expr, place: ast.expr) -> ast.expr:
    return ast.copy_location(node, place)
