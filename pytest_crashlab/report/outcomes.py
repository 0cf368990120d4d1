"""Labels and the places that assigned them: of what is built in, of one run, of two beside each other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_crashlab.compare.sentences import count
from pytest_crashlab.records.classification import BUILTIN_EXCEPTIONS, OTHER_CAUSES
from pytest_crashlab.records.outcome import BUILTIN_OUTCOMES
from pytest_crashlab.report import views
from pytest_crashlab.report.figures import DASH, text
from pytest_crashlab.report.layout import columns, draw, indented, unbroken
from pytest_crashlab.store.amendments import amendment_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from pytest_crashlab.store import Manifest, StoredRun

# An answer of a service with an error status: the test decides what it means.
_ANSWER = "(none: what a status means is the test's to say)"
_Key = tuple[str | None, str | None, str | None]


def assignments(run: StoredRun) -> tuple[views.AssignmentView, ...]:
    """Each label of ``run`` by the place that assigned it, most frequent label first."""
    definitions = _definitions(run.manifest)
    counts = _counts(run)
    totals: Counter[str | None] = Counter()
    for (label, _, _), trials in counts.items():
        totals[label] += trials
    ordered = sorted(counts, key=lambda k: (-totals[k[0]], str(k[0]), -counts[k], str(k[2])))
    return tuple(
        views.AssignmentView(
            label=label,
            kind=kind,
            site=site,
            trials=counts[label, kind, site],
            before=None,
            definition=definitions.get(label or ""),
        )
        for label, kind, site in ordered
    )


def compared_assignments(baseline: StoredRun, candidate: StoredRun) -> tuple[views.AssignmentView, ...]:
    """The labels of both runs by place: ``before`` in the baseline, ``trials`` in this run."""
    a, b = _counts(baseline), _counts(candidate)
    definitions = {**_definitions(baseline.manifest), **_definitions(candidate.manifest)}
    totals: Counter[str | None] = Counter()
    for counts in (a, b):
        for (label, _, _), trials in counts.items():
            totals[label] += trials
    ordered = sorted({*a, *b}, key=lambda k: (-totals[k[0]], str(k[0]), str(k[1]), str(k[2])))
    return tuple(
        views.AssignmentView(
            label=key[0],
            kind=key[1],
            site=key[2],
            trials=b.get(key, 0),
            before=a.get(key, 0),
            definition=definitions.get(key[0] or ""),
        )
        for key in ordered
    )


def _counts(run: StoredRun) -> dict[_Key, int]:
    """Deciding trials by label, kind and place. Trials without a row are in no place."""
    rows = run.trials.select("outcome", "kind", "site").filter(run.trials["deciding"])
    found = rows.group_by("outcome", "kind", "site", maintain_order=True).len()
    return {(label, kind, site): trials for label, kind, site, trials in found.iter_rows()}


def _definitions(manifest: Manifest) -> dict[str, str]:
    found = {label: outcome.definition for label, outcome in BUILTIN_OUTCOMES.items()}
    for vocabulary in manifest.vocabularies:
        for outcome in vocabulary.get("outcomes") or ():
            found[str(outcome.get("label"))] = str(outcome.get("definition"))
    return found


def assignment_lines(
    found: Sequence[views.AssignmentView], *, most: int | None = None
) -> Iterator[RenderableType]:
    """A table of labels by kind and place; with the baseline's trials where two runs are compared."""
    compared = any(line.before is not None for line in found)
    head = ("label", "kind", *(("before", "now") if compared else ("trials",)), "assigned at")
    rows: list[tuple[str, ...]] = [head]
    for line in found[:most]:
        counts = (str(line.before), str(line.trials)) if compared else (str(line.trials),)
        label = "(no outcome)" if line.label is None else text(line.label)
        rows.append((label, text(line.kind), *counts, text(line.site) if line.site else DASH))
    yield columns(rows, right=(2, 3) if compared else (2,), wrap=len(head) - 1)
    if most is not None and len(found) > most:
        yield indented(f"and {len(found) - most} more; 'crashlab outcomes RUN' lists all of a run.")


def render_run(view: views.OutcomesView, *, width: int, color: bool, encoding: str = "utf-8") -> str:
    """Every label of a run with its definition, and every place that assigned it."""
    return draw(_run(view), width, color=color, encoding=encoding)


def _run(view: views.OutcomesView) -> Iterator[RenderableType]:
    yield unbroken(f"crashlab run {text(view.run)}: {count(view.trials, 'trial')}")
    for line in view.amendments:
        yield indented(text(line))
    yield ""
    yield from assignment_lines(view.assignments)
    labels = dict.fromkeys(line.label for line in view.assignments if line.label is not None)
    defined = {line.label: line.definition for line in view.assignments}
    yield ""
    yield "Definitions"
    yield columns(
        [(text(label), text(defined[label]) if defined[label] else DASH) for label in labels], wrap=1
    )
    if view.unused:
        yield ""
        yield indented(f"Declared and never assigned: {', '.join(text(label) for label in view.unused)}")
    for finding in view.findings:
        yield ""
        yield indented(text(finding.text))


def outcomes_view(run: StoredRun) -> views.OutcomesView:
    """Everything about the labels of ``run``."""
    from pytest_crashlab.compare.vocabulary import vocabulary_findings

    found = assignments(run)
    used = {line.label for line in found}
    declared = dict.fromkeys(
        str(outcome.get("label"))
        for vocabulary in run.manifest.vocabularies
        for outcome in vocabulary.get("outcomes") or ()
    )
    findings = (
        views.ReasonView(code=f.key, text=f.text if f.allowed is None else f"{f.text} Silenced: {f.allowed}")
        for f in vocabulary_findings(run)
    )
    return views.OutcomesView(
        run=run.manifest.id,
        trials=sum(line.trials for line in found),
        assignments=found,
        unused=tuple(label for label in declared if label not in used),
        findings=tuple(findings),
        amendments=amendment_lines(run.manifest),
    )


def render_builtin(*, width: int, color: bool, encoding: str = "utf-8") -> str:
    """What an exception comes to without a project's own word, and the labels that are always there."""
    return draw(_builtin(), width, color=color, encoding=encoding)


def _builtin() -> Iterator[RenderableType]:
    yield "What ends a trial, and its label"
    rows = [("exception", "label")]
    rows += [
        (name, label or _ANSWER)
        for name, label in BUILTIN_EXCEPTIONS.items()
        if not name.startswith("pytest_crashlab.")  # ours are among the other causes, in words
    ]
    rows += list(OTHER_CAUSES)
    yield columns(rows, wrap=1)
    yield indented(
        "The first class found along an exception's bases decides; for one that nothing knows, what it was "
        "raised from, or all that a group of exceptions holds. The hook pytest_crashlab_classify_exception "
        "and the ini key crashlab_exceptions come before this table."
    )
    yield ""
    yield "Labels that are always there"
    yield columns([(o.label, o.kind.value, o.definition) for o in BUILTIN_OUTCOMES.values()], wrap=2)
