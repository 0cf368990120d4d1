"""Write api.md: every public name with its signature and what its docstring says first.

``python docs/make_api.py`` writes the page anew; a test holds that it is up to date.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest_crashlab
from pytest_crashlab import errors, hookspec, stats
from pytest_crashlab.plugin import fixtures
from pytest_crashlab.plugin.marker_names import MARKERS
from pytest_crashlab.records.dataset import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parent / "api.md"
# What a test or a notebook calls; the other methods of these classes are called by the plugin.
SHOWN = {
    "Dataset": ["read", "from_rows", "rows", "digest", "split_of"],
    "Judge": ["__call__", "ajudge", "provider"],
    "Outcome": ["passed", "failed", "crashed", "instrument"],
    "Store": ["open", "run_ids", "manifests", "manifest", "load"],
    "Trial": ["run", "check", "verify", "outcome", "attach", "prompt"],
    "Vocabulary": ["default_pass"],
}
# Nobody calls these classes by their name: a fixture, or a function of the class, makes the object.
MADE_BY_US = {"Dataset", "Judge", "Outcome", "Provider", "Sandbox", "Store", "Trial"}
FIXTURES = ("trial", "row", "run_config", "provider", "judge", "sandbox")
OPENING = """\
# API reference

Made from the docstrings by `docs/make_api.py`. Everything else in the package may change between versions.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([OPENING, *_names(), *_fixtures(), *_markers(), *_hooks(), *_errors(), *_stats()]) + "\n"


def _names() -> Iterator[str]:
    yield "## `pytest_crashlab`\n"
    yield "Imported when it is first asked for: `from pytest_crashlab import Check`.\n"
    for name in sorted(set(pytest_crashlab.__all__) - {"__version__"}, key=str.lower):
        yield from _name(name, getattr(pytest_crashlab, name))


def _name(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        signature = _signature(value) if inspect.isroutine(value) else ""
        yield f"### `{name}{signature}`\n"
        yield f"{_said(value) if signature else 'Marks a function as an implementation of a hook.'}\n"
        return
    yield f"### `{name}{'' if name in MADE_BY_US else _signature(value)}`\n"
    yield f"{_said(value)}\n"
    rows = [_member(value, member) for member in SHOWN.get(name, _public(value))]
    if rows:
        yield from ("| | |", "|---|---|", *rows, "")


def _public(cls: type) -> list[str]:
    """Methods and properties that the class itself defines and documents, in the order of its source."""
    return [n for n, v in vars(cls).items() if not n.startswith("_") and _function(v) is not None]


def _function(value: Any) -> Any:
    found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return found if inspect.isfunction(found) and found.__doc__ else None


def _member(cls: type, name: str) -> str:
    value = inspect.getattr_static(cls, name)
    function = _function(value)
    if isinstance(value, property):
        return _row(name, function)
    return _row(f"{'' if name == '__call__' else name}{_signature(function)}", function)


def _row(code: str, value: Any) -> str:
    return f"| `{code}` | {_said(value)} |"


def _fixtures() -> Iterator[str]:
    yield "## Fixtures\n"
    yield from ("| | |", "|---|---|")
    for name in FIXTURES:
        yield _row(name, getattr(fixtures, name).__wrapped__)
    yield ""
    yield "A `row` has:\n"
    yield f"{_said(Row, whole=True)}\n"


def _markers() -> Iterator[str]:
    yield "## Markers\n"
    yield from ("| | |", "|---|---|")
    for line in MARKERS.values():
        code, _, said = line.partition(": ")
        yield f"| `{code}` | {said} |"
    yield ""


def _hooks() -> Iterator[str]:
    yield "## Hooks\n"
    yield "In a `conftest.py` or a plugin, as functions of these names.\n"
    yield from ("| | |", "|---|---|")
    for name, value in vars(hookspec).items():
        if name.startswith("pytest_crashlab_"):
            yield _row(f"{name}{_signature(value)}", value)
    yield ""


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    yield "In `pytest_crashlab.errors`:\n"
    yield from ("| | |", "|---|---|")
    for name, value in vars(errors).items():
        if inspect.isclass(value):
            base = value.__mro__[1].__name__
            yield _row(f"{name}({base})", value)
    yield ""


def _stats() -> Iterator[str]:
    yield "## `pytest_crashlab.stats`\n"
    yield "Arrays in, numbers out. What each one assumes, and its source, is in its docstring.\n"
    yield from ("| | |", "|---|---|")
    for name in sorted(stats.__all__, key=str.lower):
        value = getattr(stats, name)
        if inspect.isfunction(value):
            yield _row(f"{name}{_signature(value)}", value)


def _signature(value: Any) -> str:
    """Names and defaults of the parameters, without their types."""
    bare = inspect.signature(value)
    kept = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in bare.parameters.items()
        if name not in {"self", "cls"}
    ]
    return re.sub(r"<(\w+\.)*\w+[.:] ?'?([\w.-]+)'?>", r"\2", str(inspect.Signature(kept)))


def _said(value: Any, *, whole: bool = False) -> str:
    """The first sentence of a docstring, or its first paragraphs, on one line."""
    text = inspect.getdoc(value) or ""
    text = text if whole else text.partition("\n\n")[0]
    text = " ".join(text.split()).replace("``", "`")
    text = re.sub(r":(?:class|func|mod|data|meth):`~?([^`]+)`", r"`\1`", text)
    if whole:
        return text
    return re.match(r".*?[.](?= [A-Z`]|$)|.*", text)[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
