"""Two digests of a case: what it asks (content) and what makes it pass (pass rule)."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import tokenize
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crashlab.plugin.canonical import canonical
from pytest_crashlab.records.dataset import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_crashlab.records.check import Check


class Identity:
    """Makes the digests of a session's cases; parses each file once."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        self._files: dict[str, _Source | None] = {}

    def content(self, item: pytest.Item) -> str:
        """Return the digest of the parameters of ``item``; of a data set's row, input and expected alone."""
        callspec: Any = getattr(item, "callspec", None)
        params = {} if callspec is None else callspec.params
        if not params:
            return digest("content")
        fallback = callspec.id
        parts = (f"{name}={self._parameter(params[name], fallback)}" for name in sorted(params))
        return digest("content", *parts)

    def _parameter(self, value: object, fallback: str) -> str:
        if isinstance(value, Row):
            return f"row:{value.content}"
        return canonical(value, self._root, fallback)

    def pass_rule(
        self, item: pytest.Item, *, min_passes: int | None = None, checks: Iterable[Check] = ()
    ) -> str | None:
        """Return the digest of what makes ``item`` pass, None where its source cannot be found.

        It covers the test function from ``def`` on without decorators and comments (of a doctest
        the examples, of other items the type), the threshold and the required checks with their kinds
        and bounds.
        """
        source = self._judge(item)
        if source is None:
            return None
        required = sorted(_criterion(check) for check in checks if check.required)
        return digest("rule", source, f"min_passes={min_passes}", *required)

    def _judge(self, item: pytest.Item) -> str | None:
        if isinstance(item, pytest.Function):
            return self._function(item.function)
        examples = getattr(getattr(item, "dtest", None), "examples", None)
        if examples is not None:
            return "\x00".join(
                f"{example.source}\x01{example.want}\x01{sorted(example.options.items())}"
                for example in examples
            )
        return f"{type(item).__module__}.{type(item).__qualname__}"

    def _function(self, function: Any) -> str | None:
        code = getattr(_unwrap(function), "__code__", None)
        if code is None:
            return None
        if code.co_filename not in self._files:
            self._files[code.co_filename] = _Source.read(code.co_filename)
        source = self._files[code.co_filename]
        return None if source is None else source.function(code.co_name, code.co_firstlineno)


def _criterion(check: Check) -> str:
    """What of a required check decides: its name, and its kind and bounds where it has them."""
    parts = (("kind", check.kind), ("at_least", check.at_least), ("at_most", check.at_most))
    return " ".join([check.name, *(f"{name}={value}" for name, value in parts if value is not None)])


class _Source:
    """The functions of one file by name and first line (that of the first decorator)."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._found: dict[tuple[str, int], tuple[int, int]] = {}
        for node in _functions(ast.parse(text)):
            if node.end_lineno is not None:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self._found[node.name, first] = (node.lineno, node.end_lineno)

    @classmethod
    def read(cls, filename: str) -> _Source | None:
        try:
            with tokenize.open(filename) as stream:
                return cls(stream.read())
        except (OSError, SyntaxError, ValueError):
            return None

    def function(self, name: str, first_line: int) -> str | None:
        found = self._found.get((name, first_line))
        if found is None:
            return None
        return _without_comments(self._lines[found[0] - 1 : found[1]])


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions in ``tree``; looks through statements only, as no expression holds a ``def``."""
    bodies = [tree]
    while bodies:
        node = bodies.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                bodies += inner


def _without_comments(lines: list[str]) -> str:
    """Return the lines of a function, moved to the left margin, without comments and blank ends."""
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    lines = [line.removeprefix(indent) for line in lines]
    text = "\n".join(lines)
    inside: set[int] = set()  # rows that end within a string, where blanks are content
    if "#" in text or '"""' in text or "'''" in text:
        try:
            for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
                row, column = token.start
                if token.type == tokenize.COMMENT:
                    lines[row - 1] = lines[row - 1][:column]
                elif token.type != tokenize.NEWLINE:
                    inside.update(range(row, token.end[0]))
        except (tokenize.TokenError, SyntaxError):
            return text
    rows = (
        line if row in inside else line.rstrip()
        for row, line in enumerate(lines, start=1)
        if row in inside or line.strip()
    )
    return "\n".join(rows)


def _unwrap(function: Any) -> Any:
    """Return the function that the author wrote, under decorators, partials and Hypothesis."""
    for _ in range(32):
        if isinstance(function, (functools.partial, functools.partialmethod)):
            function = function.func
            continue
        inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
        inner = getattr(function, "__wrapped__", None) if inner is None else inner
        if inner is None:
            break
        function = inner
    return getattr(function, "__func__", function)


def digest(*parts: str) -> str:
    """Return 32 hex digits that stand for ``parts``; where one ends and the next begins counts."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        found.update(b"%d:" % len(data))
        found.update(data)
    return found.hexdigest()[:32]
