"""JUnit XML of repeated runs: a file is one trial of every case in it.

A case id that carries this plugin's ``trialN`` is that trial. A failure is a fail and a skip is excluded.
What an *error* was cannot be known from JUnit (a fixture that failed, or an exception of the code under
test), so its label ``error`` has to be given a kind.
"""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from pytest_crashlab.errors import UsageError
from pytest_crashlab.importing.rows import SourceRow, one_line
from pytest_crashlab.importing.source import Source, refuse
from pytest_crashlab.importing.table import read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TRIAL = re.compile(r"(?:\[|-)trial([1-9]\d*)\]$")


def read_junit(paths: Sequence[Path], name: str) -> Source:
    """The trials of JUnit files, in the order of ``paths``; `UsageError` for one that is none."""
    rows: list[SourceRow] = []
    problems: list[tuple[str, str]] = []
    seen = hashlib.sha256()
    done = 0
    for path in paths:
        content = read_bytes(path)
        seen.update(content)
        found = [_row(case, path.name) for case in _cases(content, path)]
        keys: set[tuple[str, int]] = set()
        for row in found:
            key = (row.case, row.trial or 1)
            if key in keys:
                problems.append((path.name, f"{row.case} is in the file twice"))
            keys.add(key)
            row.trial = done + key[1]
        done += max((trial for _, trial in keys), default=1)
        rows += found
    refuse(name, problems)
    if not rows:
        raise UsageError(f"{name} holds no test case.")
    return Source(kind="JUnit XML", path=name, sha256=seen.hexdigest(), rows=rows, planned=done)


def _cases(content: bytes, path: Path) -> list[ET.Element]:
    if b"<!ENTITY" in content:
        raise UsageError(f"{path} declares entities, which no test report needs; nothing was imported.")
    try:
        root = ET.fromstring(content)  # noqa: S314 - entities are refused above
    except ET.ParseError as error:
        raise UsageError(f"{path} is no XML ({error}); nothing was imported.") from None
    if root.tag not in ("testsuites", "testsuite"):
        raise UsageError(f"{path} is no JUnit report (its root is <{root.tag}>); nothing was imported.")
    return [case for suite in root.iter("testsuite") for case in suite.findall("testcase")]


def _row(case: ET.Element, where: str) -> SourceRow:
    where = f"{where}, {case.get('name', '')}"
    parts = [text for text in (case.get("classname"), case.get("name")) if text]
    if not parts:
        raise UsageError(f"{where}: a test case without a name; nothing was imported.")
    name, trial = "::".join(parts), 1
    if match := _TRIAL.search(name):
        trial = int(match[1])
        name = name[: match.start()] + ("]" if name[match.start()] == "-" else "")
    row = SourceRow(where=where, case=name, trial=trial, passed=True)
    for tag, passed, label in (
        ("failure", False, "failed"),
        ("error", None, "error"),
        ("skipped", None, "skipped"),
    ):
        said = case.find(tag)
        if said is not None:
            row.passed, row.outcome = passed, label
            row.message = one_line(said.get("message") or said.text or "") or None
    try:
        seconds = float(case.get("time") or "nan")
    except ValueError:
        seconds = float("nan")
    row.duration = seconds if 0 <= seconds < float("inf") else None
    return row
