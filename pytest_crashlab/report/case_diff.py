"""One case in two runs, trial beside trial, with what changed in their words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_crashlab.report.evidence import MOST_CHARACTERS, bounded
from pytest_crashlab.report.words import Words, changed_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_crashlab.report import views
    from pytest_crashlab.store import StoredRun

    Kept = Callable[[Mapping[str, Any]], tuple[dict[str, Any] | None, str | None]]

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SideView:
    """The attempt that counts for a trial of one run.

    ``said`` the message of its row or, where more was kept, the whole of it; ``output`` what the target
    gave, as text, None where it was not kept; ``problem`` why what was kept cannot be read.
    """

    trial: int
    attempt: int
    outcome: str | None
    kind: str | None
    site: str | None
    said: str | None
    output: str | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """A trial of the candidate beside one of the baseline; None: that trial never reported.

    They are no pair of the same random draw: they stand beside each other so that they can be read.
    ``output`` and ``said`` are word by word what changed, empty where one side has nothing.
    """

    a_trial: int
    b_trial: int
    a: SideView | None
    b: SideView | None
    output: tuple[Words, ...]
    said: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDiffView:
    """One case in a baseline and a candidate.

    ``a_pass`` of ``a_n`` decided trials passed, likewise ``b``; ``not_compared`` why the verdict leaves the
    case out, None where it does not. ``position`` among the ``of`` cases ``shown``, from 1, None where it
    is none of them; ``before`` and ``after`` the cases beside it. ``input`` and ``expected`` are as the
    candidate kept them, else the baseline. ``named`` what a command calls the baseline.
    """

    baseline: str
    named: str
    candidate: str
    case: str
    a_pass: int
    a_n: int
    b_pass: int
    b_n: int
    proven: int | None
    p: float | None
    not_compared: str | None
    shown: str
    position: int | None
    of: int
    before: str | None
    after: str | None
    input: Any
    expected: Any
    pairs: tuple[PairView, ...]


def case_diff_view(
    baseline: StoredRun,
    candidate: StoredRun,
    found: views.DiffView,
    case: str,
    *,
    kept: tuple[Kept, Kept],
    trial: int | None = None,
    beside: int | None = None,
) -> CaseDiffView:
    """``case`` in both runs; ``found`` their comparison, with the cases that it stands among.

    ``kept`` gives what was kept of a row of the baseline and of the candidate; ``trial`` of the candidate
    alone, ``beside`` of the baseline (the same number where it is None).
    """
    rows = tuple(_rows(run, case) for run in (baseline, candidate))
    documents: list[dict[str, Any]] = []
    numbers = _numbers(baseline, candidate, case, trial, beside)
    pairs = tuple(_pair(rows, these, kept, documents) for these in numbers)
    compared = next((c for c in found.verdict.cases if c.case == case), None)
    left_out = next((group.words for group in found.verdict.left_out if case in group.cases), None)
    names = [c.case for c in found.cases]
    at = names.index(case) if case in names else None
    a, b = (_counts(of) for of in rows)
    return CaseDiffView(
        baseline=baseline.manifest.id,
        named=named(found),
        candidate=candidate.manifest.id,
        case=case,
        a_pass=a[0],
        a_n=a[1],
        b_pass=b[0],
        b_n=b[1],
        proven=None if compared is None else compared.proven,
        p=None if compared is None else compared.p,
        not_compared=left_out,
        shown=found.shown,
        position=None if at is None else at + 1,
        of=len(names),
        before=names[at - 1] if at else None,
        after=names[at + 1] if at is not None and at + 1 < len(names) else None,
        input=_first(documents, "input"),
        expected=_first(documents, "expected"),
        pairs=pairs,
    )


def named(found: views.DiffView) -> str:
    """What a command has to call the baseline: a file where it is one, else its id or name."""
    options = found.gate_options
    return options[options.index("--baseline") + 1] if "--baseline" in options else found.baseline.id


def case_diff_json(view: CaseDiffView) -> dict[str, Any]:
    """The view as plain values, long texts and lists cut."""
    data = bounded_texts(asdict(view))
    return {"schema": "crashlab.case_diff", "version": VERSION, **data}


def bounded_texts(value: Any) -> Any:
    """Like :func:`bounded`, but no trial and no word is left out, only the ends of long texts."""
    if isinstance(value, dict):
        return {
            key: bounded(inner) if key in {"input", "expected"} else bounded_texts(inner)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [bounded_texts(inner) for inner in value]
    return bounded(value) if isinstance(value, str) and len(value) > MOST_CHARACTERS else value


def _rows(run: StoredRun, case: str) -> dict[int, dict[str, Any]]:
    mine = run.trials.filter((run.trials["case"] == case) & run.trials["deciding"])
    return {row["trial"]: row for row in mine.iter_rows(named=True)}


def _counts(rows: Mapping[int, Mapping[str, Any]]) -> tuple[int, int]:
    decided = [row["kind"] for row in rows.values() if row["kind"] in {"pass", "fail", "crash"}]
    return decided.count("pass"), len(decided)


def _numbers(
    baseline: StoredRun, candidate: StoredRun, case: str, trial: int | None, beside: int | None
) -> list[tuple[int, int]]:
    """The trials that stand beside each other, baseline first."""
    if trial is not None or beside is not None:
        b = trial or beside or 1
        return [(beside or b, b)]
    planned = max(_planned(baseline, case), _planned(candidate, case))
    return [(n, n) for n in range(1, planned + 1)]


def _planned(run: StoredRun, case: str) -> int:
    found = run.cases.filter(run.cases["case"] == case)["planned"].to_list()
    return int(found[0]) if found else 0


def _pair(
    rows: Sequence[Mapping[int, dict[str, Any]]],
    numbers: tuple[int, int],
    kept: Sequence[Kept],
    documents: list[dict[str, Any]],
) -> PairView:
    sides: list[SideView | None] = []
    for of, number, read in zip(rows, numbers, kept, strict=True):
        row = of.get(number)
        document, problem = (None, None) if row is None else read(row)
        if document is not None:
            documents.append(document)
        sides.append(None if row is None else _side(row, document or {}, problem))
    a, b = sides
    return PairView(
        a_trial=numbers[0],
        b_trial=numbers[1],
        a=a,
        b=b,
        output=_words(a.output, b.output) if a and b else (),
        said=_words(a.said, b.said) if a and b else (),
    )


def _side(row: Mapping[str, Any], document: Mapping[str, Any], problem: str | None) -> SideView:
    said = document.get("why") or row["message"]
    return SideView(
        trial=row["trial"],
        attempt=row["attempt"],
        outcome=row["outcome"],
        kind=row["kind"],
        site=row["site"],
        said=None if said is None else _as_text(said),
        output=_as_text(document["output"]) if document.get("output") is not None else None,
        problem=problem,
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _words(a: str | None, b: str | None) -> tuple[Words, ...]:
    return () if a is None or b is None else changed_words(a, b)


def _first(documents: Sequence[Mapping[str, Any]], part: str) -> Any:
    """As the candidate kept it, which is read last."""
    return next((d[part] for d in reversed(documents) if d.get(part) is not None), None)
