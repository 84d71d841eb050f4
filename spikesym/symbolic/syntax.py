"""From text to a syntax tree, with every size bounded first; what the tree may hold is decided in the parser."""

from __future__ import annotations

import ast
import re
import warnings
from typing import NoReturn

from ..errors import ParseError

MAX_LENGTH = 2000
MAX_DEPTH = 40
MAX_LEVELS = 160
MAX_NODES = 1500

_ALLOWED_CHARACTERS = re.compile(r"[A-Za-z0-9_+\-*/^().,<>=!&| \t\r\n]*")


def refuse(where: str, what: str, remedy: str, node: ast.AST | None = None) -> NoReturn:
    """Raise :class:`~spikesym.errors.ParseError`, with the column of ``node``."""
    column = getattr(node, "col_offset", None)
    raise ParseError(what if column is None else f"{what} at column {column + 1}", where, remedy)


def checked_text(text: object, variable: str, where: str) -> str:
    """The text on one line; refused when it is too long, too deep or has characters of no use here."""
    if not isinstance(text, str):
        refuse(where, f"not text: {type(text).__name__}", "give an expression such as tanh(s)")
    if len(text) > MAX_LENGTH:
        refuse(where, f"{len(text)} characters long", f"at most {MAX_LENGTH} characters are read")
    folded = re.sub(r"[\t\r\n]", " ", text).strip(" ")
    if not folded:
        refuse(where, "empty", f"give a name such as relu or an expression in {variable}")
    if not _ALLOWED_CHARACTERS.fullmatch(folded):
        bad = next(c for c in folded if not _ALLOWED_CHARACTERS.fullmatch(c))
        refuse(
            where,
            f"character {bad!a} at column {folded.index(bad) + 1}",
            "write with ASCII letters, digits and + - * / ** ( ) , < > only",
        )
    depth = deepest = 0
    for character in folded:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        refuse(where, f"{deepest} nested parentheses", f"at most {MAX_DEPTH} are read")
    return folded


def syntax_tree(text: str, where: str) -> ast.expr:
    """The tree of a checked text.

    Examples
    --------
    >>> type(syntax_tree("s + 1", "--link")).__name__
    'BinOp'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        place = f" at column {error.offset}" if error.offset else ""
        remedy = "write products as 2*s and powers as s**2"
        if re.search(r"\blambda\b", text):
            remedy = "lambda is a reserved word; write an expression, and name a parameter lam"
        refuse(where, f"not an expression{place}", remedy)
    except (RecursionError, MemoryError, ValueError):
        refuse(where, "nested too deeply", f"at most {MAX_DEPTH} levels are read")
    level: list[ast.AST] = [tree]
    nodes = 0
    for _ in range(MAX_LEVELS):
        nodes += len(level)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            break
    if level or nodes > MAX_NODES:
        refuse(
            where, "too many nested operations", f"at most {MAX_LEVELS} levels and {MAX_NODES} terms are read"
        )
    return tree
