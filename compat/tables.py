"""The measured tables, for a terminal and for the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from run import Checked

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, with its columns aligned."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in (head, rule, *lines[1:])
    )


def text(suites: Sequence[Checked], plugins: Sequence[Checked]) -> str:
    """Both tables; a peer that did not run is left out."""
    blocks = []
    if suites:
        peers = list(suites[0].peers)
        head = ("suite", "tests", *suites[0].sessions, *peers)
        blocks.append(table(head, [_row(check, peers) for check in suites]))
    if plugins:
        head = ("beside", "on", *plugins[0].sessions)
        blocks.append(table(head, [_row(check, []) for check in plugins]))
    return "\n\n".join(blocks)


def _row(check: Checked, peers: Sequence[str]) -> list[str]:
    counted = [str(counts) for counts in check.sessions.values()]
    return [
        f"{check.name} {check.version}",
        check.about,
        *counted,
        *(str(check.peers[peer]) for peer in peers),
    ]


def write(page: Path, suites: Sequence[Checked], plugins: Sequence[Checked]) -> None:
    """Put the tables between the two marks of ``page``."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{text(suites, plugins)}\n\n{END}{after}", "utf-8")
