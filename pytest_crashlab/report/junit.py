"""JUnit XML with one test case per case: CI shows each once, whatever its number of trials."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.outcome import Decision, Kind
from pytest_crashlab.report.figures import seconds

if TYPE_CHECKING:
    from os import PathLike

    from pytest_crashlab.report import views
    from pytest_crashlab.store import StoredRun

# Everything XML 1.0 has no place for, even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: str | PathLike[str], run: StoredRun, view: views.SessionView) -> None:
    """Write ``view``'s cases with the trials of ``run`` to ``path``, making its folder.

    A case is a failure where the gate fails it. Other gated cases are no failure whatever their
    trials did, and skipped where no trial gave a decision: an instrument failure is never an error
    of theirs. A case that is not gated reads as in plain pytest: failure, error, skipped or passed.
    Raises `UsageError` where the file cannot be written.
    """
    from pathlib import Path

    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(junit_xml(run, view))
    except OSError as error:
        raise UsageError(
            f"The JUnit file {target} cannot be written ({error.strerror or error}); name another path."
        ) from error


def junit_xml(run: StoredRun, view: views.SessionView) -> bytes:
    """The document as UTF-8."""
    trials = _trials(run)
    suite = ET.Element("testsuite", name="pytest-crashlab")
    _properties(suite, _suite_properties(view))
    total = 0.0
    counts = {"failure": 0, "error": 0, "skipped": 0}
    moved = {} if view.verdict is None else {c.case: c for c in view.verdict.cases}
    failed = set() if view.gate is None else set(view.gate.failed_cases)
    for case in view.cases:
        lines = trials.get(case.case, [])
        duration = sum(line["duration"] for line in lines)
        total += duration
        classname, name = _address(case.case)
        element = ET.SubElement(suite, "testcase", classname=classname, name=name)
        if lines:  # how long a case took of which no trial arrived is not known
            element.set("time", f"{duration:.3f}")
        _properties(element, _case_properties(case, lines))
        result: tuple[str, str] | None
        if case.case in failed:
            result = "failure", _why_failed(case, moved.get(case.case), view)
        else:
            result = _gated_result(case) if case.gated else _plain_result(case, lines)
        if result is not None:
            counts[result[0]] += 1
            child = ET.SubElement(element, result[0], message=_xml(result[1]))
            child.text = _xml("\n".join(_trial(line) for line in lines))
    suite.attrib.update(
        tests=str(len(view.cases)),
        failures=str(counts["failure"]),
        errors=str(counts["error"]),
        skipped=str(counts["skipped"]),
        timestamp=view.run.started.rstrip("Z"),
    )
    if trials or not view.cases:
        suite.set("time", f"{total:.3f}")
    root = ET.Element("testsuites", name="pytest-crashlab")
    root.append(suite)
    ET.indent(root)
    text: str = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _trials(run: StoredRun) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    deciding = run.trials.filter(run.trials["deciding"]).sort("case", "trial")
    for line in deciding.iter_rows(named=True):
        found.setdefault(line["case"], []).append(line)
    return found


def _suite_properties(view: views.SessionView) -> dict[str, str]:
    properties = {"crashlab.run": view.run.id, "crashlab.status": view.run.status}
    if view.verdict is not None:
        if view.verdict.baseline_id:
            properties["crashlab.baseline"] = view.verdict.baseline_id
        properties["crashlab.verdict"] = view.verdict.word
        properties["crashlab.headline"] = view.verdict.headline
        properties["crashlab.sentence"] = view.verdict.sentence
        for number, reason in enumerate(view.verdict.reasons, 1):
            properties[f"crashlab.reason.{number}"] = reason.text
    if view.gate is not None:
        properties["crashlab.exit_code"] = str(view.gate.exit_code)
        properties["crashlab.policy"] = view.gate.policy
    return properties


def _case_properties(case: views.CaseView, lines: list[dict[str, Any]]) -> dict[str, str]:
    counts = {
        "crashlab.outcome": case.outcome,
        "crashlab.planned": case.planned,
        "crashlab.passes": case.passes,
        "crashlab.decided": case.decided,
        "crashlab.undecided": case.undecided,
        "crashlab.missing": case.missing,
        "crashlab.excluded": case.excluded,
    }
    return {
        **{name: str(value) for name, value in counts.items()},
        **{f"crashlab.trial.{line['trial']}": line["outcome"] or "no_outcome" for line in lines},
    }


def _why_failed(
    case: views.CaseView, compared: views.ComparedCaseView | None, view: views.SessionView
) -> str:
    missed = [t.text for t in view.thresholds if t.case == case.case and t.met is False]
    if compared is not None and compared.delta < 0:
        proven = "proven worse" if compared.proven < 0 else "worse in a run that regressed"
        missed.append(
            f"{compared.a_pass}/{compared.a_n} -> {compared.b_pass}/{compared.b_n} trials passed: {proven}."
        )
    return " ".join(missed) or f"{case.passes} of {case.decided} decided trials passed."


def _gated_result(case: views.CaseView) -> tuple[str, str] | None:
    if case.decided:
        return None
    return "skipped", _no_decision(case)


def _plain_result(case: views.CaseView, lines: list[dict[str, Any]]) -> tuple[str, str] | None:
    for tag, decision in (("failure", Decision.FAIL), ("error", Decision.INCONCLUSIVE)):
        for line in lines:
            if line["kind"] is not None and Kind(line["kind"]).decision is decision:
                return tag, line["message"] or line["outcome"]
    if case.missing or not case.decided:
        return "skipped", _no_decision(case)
    return None


def _no_decision(case: views.CaseView) -> str:
    counts = ((case.undecided, "undecided"), (case.missing, "missing"), (case.excluded, "excluded"))
    return f"{', '.join(f'{n} {word}' for n, word in counts if n)} of {case.planned} trials"


def _trial(line: dict[str, Any]) -> str:
    said = f"trial {line['trial']}: {line['outcome'] or 'no_outcome'} in {seconds(line['duration'])}"
    if line["site"]:
        said += f" at {line['site']}"
    return f"{said}: {line['message']}" if line["message"] else said


def _address(case: str) -> tuple[str, str]:
    """Class name and name as pytest's own JUnit file has them."""
    path, bracket, parameters = case.partition("[")
    file, *names = path.split("::")
    parts = [file.removesuffix(".py").replace("/", "."), *names]
    return _xml(".".join(parts[:-1])), _xml(parts[-1] + bracket + parameters)


def _properties(element: ET.Element, values: dict[str, str]) -> None:
    holder = ET.SubElement(element, "properties")
    for name, value in values.items():
        ET.SubElement(holder, "property", name=name, value=_xml(value))


def _xml(value: str) -> str:
    """``value`` with what XML cannot hold written out: "#x1B"."""
    return _NOT_XML.sub(lambda match: f"#x{ord(match.group()):02X}", value)
