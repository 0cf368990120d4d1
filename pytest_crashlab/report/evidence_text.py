"""One attempt of a trial as text for a terminal, which obeys nothing of what a target printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_crashlab.report.figures import DASH, seconds, text
from pytest_crashlab.report.layout import draw, unbroken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crashlab.report.evidence import CheckView, TrialView

MOST_LINES = 60
_WORDS = {True: "holds", False: "does not hold", None: "not evaluated"}


def render_trial(view: TrialView, *, width: int, color: bool, encoding: str = "utf-8") -> str:
    """``view`` as lines; long parts are cut after 60 lines and say so. Texts are not wrapped."""
    return draw((unbroken(line) for line in _lines(view)), width, color=color, encoding=encoding)


def _lines(view: TrialView) -> Iterator[str]:
    yield from _head(view)
    found = view.evidence or {}
    if view.problem is not None:
        yield from ("", text(view.problem))
    elif view.evidence is None:
        yield from ("", "Nothing was kept of this trial besides its row.")
    yield from _part("Why", _text_lines(found.get("why") or view.row["message"]))
    for check in view.checks:
        yield from _check(check)
    for title in ("input", "expected", "output"):
        if title in found:
            yield from _part(title.capitalize(), value_lines(found[title]))
    for exception in _objects(found.get("exceptions")):
        title = f"Exception in {text(_one_line(exception.get('phase')))}"
        yield from _part(title, _text_lines(exception.get("traceback") or exception.get("message")))
    for captured in _objects(found.get("captured")):
        yield from _part(text(_one_line(captured.get("name"))), _text_lines(captured.get("text")))
    for attached in _objects(found.get("attachments")):
        yield from _part(_attachment_title(attached), _attachment_lines(attached))


def _head(view: TrialView) -> Iterator[str]:
    row = view.row
    attempt = "" if view.attempts == 1 else f", attempt {view.attempt} of {view.attempts}"
    counts = "" if view.deciding else " (another attempt counts)"
    yield f"{text(view.case)}, trial {view.trial}{attempt}{counts}"
    kind = f" ({text(row['kind'])})" if row["kind"] else ""
    site = text(row["site"]) if row["site"] else DASH
    phase = f", decided in {text(row['phase'])}" if row["phase"] else ""
    yield f"  {text(row['outcome'] or 'no_outcome')}{kind} at {site}{phase}"
    took = "".join(f", {phase.name} {seconds(phase.seconds)}" for phase in view.phases)
    yield f"  {_moment(row['start'])}, {seconds(row['duration'])} in all{took}, process {text(row['worker'])}"
    if row["t"] is not None:
        of = "" if row["horizon"] is None else f" of {row['horizon']:g}"
        yield f"  {row['t']:g}{of} {text(row['t_unit'] or '')}".rstrip()
    if row["cached"]:
        yield "  it had answers of its model out of a cache: it is no sample of its own"
    if row["failure_class"]:
        yield f"  failure class {text(row['failure_class'])}"
    if row["record_error"]:
        yield f"  beside the outcome: {text(row['record_error'])}"


def _check(check: CheckView) -> Iterator[str]:
    judge = f", judged by {text(check.judge)}" if check.judge else ""
    at = f" at {text(check.site)}" if check.site else ""
    wanted = "required" if check.required else "not required"
    yield from ("", f"Check {text(check.name)} ({wanted}): {_WORDS[check.ok]}{at}{judge}")
    if check.must:
        yield f"  must: {text(check.must)}"
    if check.value is not None:
        bounds = (("at least", check.at_least), ("at most", check.at_most))
        asked = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        yield f"  measured {check.value:g}; asked {asked or 'nothing'}"
    if check.why:
        yield f"  {text(check.why)}"
    if check.failure_class and check.ok is False:
        yield f"  failure class {text(check.failure_class)}"
    for name, value in check.seen.items():
        first, *rest = list(value_lines(value)) or [""]
        yield f"  {text(name)}: {first}"
        yield from (f"    {line}" for line in rest[:MOST_LINES])


def _part(title: str, lines: Iterator[str]) -> Iterator[str]:
    """A heading and its lines; nothing where there are none."""
    shown = [line for _, line in zip(range(MOST_LINES), lines, strict=False)]
    if not shown:
        return
    yield from ("", title)
    yield from (f"  {line}" for line in shown)
    more = sum(1 for _ in lines)
    if more:
        yield f"  ... {more:,} more lines (--raw shows all)"


def value_lines(value: Any) -> Iterator[str]:
    """A text or a JSON value as lines that are safe in a terminal."""
    if isinstance(value, str):
        return _text_lines(value)
    return _text_lines(json.dumps(value, indent=2, ensure_ascii=False))


def _text_lines(value: Any) -> Iterator[str]:
    """Each line made safe; a tab is a blank, and only a line's end ends a line."""
    whole = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    lines = whole.rstrip("\n").split("\n") if whole else []
    return (text(line.removesuffix("\r").expandtabs(4)) for line in lines)


def _attachment_title(attached: dict[str, Any]) -> str:
    size = attached.get("size")
    unit = "characters" if attached.get("kind") == "text" else "bytes"
    told = f", {size:,} {unit}" if isinstance(size, int) else ""
    name, kind = _one_line(attached.get("name")), _one_line(attached.get("media_type"))
    return f"Attachment {text(name)} ({text(kind)}{told})"


def _attachment_lines(attached: dict[str, Any]) -> Iterator[str]:
    note = attached.get("note")
    if "data" not in attached:
        return _text_lines(note or "not kept")
    if attached.get("kind") == "binary":
        return iter(["binary; --raw shows it in base64"])
    return value_lines(attached["data"])


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list that a stranger may have written."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _one_line(value: Any) -> str:
    return value if isinstance(value, str) else DASH


def _moment(start: float) -> str:
    return f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d %H:%M:%S} UTC"
