"""``crashlab diff A B --copy FILE``: the cases of a list, as arguments for pytest or as a data set."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_crashlab.cli import looks, trials
from pytest_crashlab.compare.sentences import count
from pytest_crashlab.errors import UsageError
from pytest_crashlab.records.redaction import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_crashlab.store import Store, StoredRun

# A run by the name that the user gave it: an exported one is read from its file.
Named = tuple[str, "StoredRun"]

_CUT = "[... cut"  # how evidence marks what it left out
_DATASET = ".jsonl"


def is_dataset(path: Path) -> bool:
    """Whether a file of this name becomes a data set."""
    return path.suffix == _DATASET


def copy(path: Path, names: Sequence[str], store: Store, runs: Sequence[Named], *, look: bool) -> str:
    """Write the cases ``names`` to ``path``; return what was written and how to run it, in a sentence.

    ``runs`` those that may know what a case asks, the first one first.
    """
    if not names:
        raise UsageError(f"There is no case to copy, so {path} is not written; ask for others with --show.")
    if not is_dataset(path):
        _write(path, names)
        return f"{count(len(names), 'case')} copied; 'pytest @{path}' runs them."
    for _, run in runs:
        looks.count_view(store, run.manifest, look=look)
    rows = list(_rows(names, store, runs))
    if not rows:
        raise UsageError(
            f"{path} is not written: of none of these cases the input was kept whole; name a file that does "
            f"not end in {_DATASET}, to write their ids."
        )
    _write(path, [json.dumps(row, ensure_ascii=False) for row in rows])
    left = len(names) - len(rows)
    why = f"; {count(left, 'case')} left out, whose input was not kept whole" if left else ""
    return f"{count(len(rows), 'row')} written{why}. {_how_to_run(path, rows)} makes cases of them."


def _how_to_run(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    if all("expected" in row for row in rows):
        return f"crashlab(dataset={path.name!r})"
    return f"Dataset.read({path.name!r}, requires_expected=False)"


def _write(path: Path, lines: Sequence[str]) -> None:
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror or error}); name another file."
        ) from error


def _rows(names: Sequence[str], store: Store, runs: Sequence[Named]) -> Iterator[dict[str, Any]]:
    short = [_short(name) for name in names]
    own = max(Counter(short).values()) == 1
    for name, brief in zip(names, short, strict=True):
        for reference, run in runs:
            asked = _asked(name, store, reference, run)
            if asked is not None:
                yield {
                    "id": brief if own else name,
                    **asked,
                    "metadata": {"case": name, "run": run.manifest.id},
                }
                break


def _short(case: str) -> str:
    """The case's own part of its id: what stands in brackets, else the test's name."""
    head, bracket, inner = case.partition("[")
    return inner.removesuffix("]") if bracket and inner.endswith("]") else head.rpartition("::")[2]


def _asked(case: str, store: Store, reference: str, run: StoredRun) -> dict[str, Any] | None:
    """``input`` and, where there is one, ``expected``, of the first trial that kept them whole."""
    mine = run.trials.filter((run.trials["case"] == case) & run.trials["deciding"])
    for row in mine.iter_rows(named=True):
        document, _ = trials.kept(reference, run, store, row)
        if document is not None and _is_whole(document, "input"):
            known = ("input", "expected") if _is_whole(document, "expected") else ("input",)
            return {key: document[key] for key in known}
    return None


def _is_whole(document: Mapping[str, Any], key: str) -> bool:
    """Whether a value was kept as it was: all of it, and with no secret taken out."""
    written = json.dumps(document.get(key), ensure_ascii=False)
    return key in document and _CUT not in written and REDACTED not in written
