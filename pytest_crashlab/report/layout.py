"""Lines and columns: the little that drawing text in a terminal takes."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pytest_crashlab.report.figures import ascii_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import ConsoleOptions, RenderableType


_CASE = re.compile(r"::[^ \[]*\[[^\]]*\]")


def draw(parts: Iterable[RenderableType], width: int, *, color: bool, encoding: str = "utf-8") -> str:
    """Rich renderables as text, without trailing blanks."""
    console = Console(
        file=(out := io.StringIO()),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    for part in parts:
        whole = isinstance(part, Hanging) or (isinstance(part, Text) and bool(part.no_wrap))
        console.print(part, soft_wrap=whole)
    lines = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    drawn = f"{lines}\n" if lines else ""
    return drawn if _is_utf8(encoding) else ascii_text(drawn)


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "").replace("_", "") in {"utf8", "utf8sig"}


@dataclass(frozen=True, slots=True)
class Hanging:
    """Words wrapped below each other, none of them broken: what is too long for a line stays whole.

    ``indent`` columns before every line, ``below`` more before all but the first.
    """

    words: tuple[str, ...]
    indent: int = 0
    below: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        line, start = "", " " * self.indent
        for word in self.words:
            longer = f"{line} {word}" if line else word
            if line and cell_len(start) + cell_len(longer) > options.max_width:
                yield unbroken(start + line)
                start, longer = " " * (self.indent + self.below), word
            line = longer
        yield unbroken(start + line)


def indented(line: str) -> RenderableType:
    """A sentence under a heading, wrapped below itself; it may begin with more blanks."""
    said = line.lstrip(" ")
    return Hanging(words(said), indent=2 + len(line) - len(said))


def words(said: str) -> tuple[str, ...]:
    """``said`` cut at its blanks, but not at those in the parameters of a case, which is one word."""
    joined = _CASE.sub(lambda found: found.group().replace(" ", "\0"), said)
    return tuple(word.replace("\0", " ") for word in joined.split(" "))


def listed(before: str, names: Sequence[str], *, indent: int, most: int = 3) -> RenderableType:
    """A few names behind words that count them: "2 undecided: a, b and 4 more". Names are not broken."""
    shown = [f"{name}," for name in names[:most]]
    more = f"and {len(names) - most} more".split(" ") if len(names) > most else []
    if shown:
        shown[-1] = shown[-1][:-1]
    return Hanging((*before.split(" "), *shown, *more), indent=indent, below=2)


def unbroken(line: str) -> Text:
    """A line with something to copy: it may be wider than the terminal."""
    return Text(line, no_wrap=True)


def columns(
    rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), wrap: int | Sequence[int] = ()
) -> RenderableType:
    """Aligned columns; those in ``right`` to the right; those in ``wrap`` share what is left and wrap."""
    wrapped = (wrap,) if isinstance(wrap, int) else wrap
    table = Table.grid(padding=(0, 2, 0, 0))
    for index in range(len(rows[0]) if rows else 0):
        table.add_column(
            justify="right" if index in right else "left",
            no_wrap=index not in wrapped,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return Padding(table, (0, 0, 0, 2))
