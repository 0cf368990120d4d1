"""Logs of Inspect: ``.eval`` archives and ``.json`` files; a sample's epochs are its trials.

Scores C and I, true and false, 1 and 0 are passes and fails. Other letters are labels that have to be given
a kind, other numbers need a threshold. A sample that ended by an error has the label ``error`` and no score,
whatever it carries; one that a limit ended did not complete, and without a score its label is ``limit``.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from pytest_crashlab.errors import UsageError
from pytest_crashlab.importing.rows import SourceRow, digest, moment, one_line
from pytest_crashlab.importing.source import Source, refuse
from pytest_crashlab.importing.table import read_bytes
from pytest_crashlab.records.run import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_LETTERS = {"C": True, "I": False}
_STATUS = {"success": RunStatus.COMPLETED, "error": RunStatus.FAILED}
_HEADERS = ("header.json", "results.json", "_journal/start.json", "start.json")


def read_inspect(path: Path, score: str | None = None) -> Source:
    """The trials of a log; ``score`` names the scorer where a sample has several.

    Raises `UsageError` for a file that is no log, and for samples that cannot be read.
    """
    content = read_bytes(path)
    header, samples = _archive(path) if content[:2] == b"PK" else _single(path, content)
    rows: list[SourceRow] = []
    problems: list[tuple[str, str]] = []
    for sample in samples:
        where = f"sample {sample.get('id')}, epoch {sample.get('epoch')}"
        try:
            rows.append(_row(sample, score, where))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append((where, str(error) if isinstance(error, ValueError) else f"it lacks {error}"))
    refuse(str(path), problems)
    if not rows:
        raise UsageError(f"{path} holds no sample.")
    spec = _dict(header.get("eval"))
    dataset = _dict(spec.get("dataset"))
    epochs = _dict(spec.get("config")).get("epochs")
    return Source(
        kind="Inspect log",
        path=str(path),
        sha256=hashlib.sha256(content).hexdigest(),
        rows=rows,
        planned=epochs if isinstance(epochs, int) and epochs > 0 else None,
        cases=[str(case) for case in dataset.get("sample_ids") or ()],
        status=_STATUS.get(str(header.get("status")), RunStatus.CANCELLED).value,
        labels={
            "name": spec.get("task"),
            "dataset": dataset.get("name"),
            "environment": {"model": spec["model"]} if spec.get("model") else {},
        },
    )


def _single(path: Path, content: bytes) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    try:
        log = json.loads(content)
        samples = log["samples"]
        log["eval"]["task"]
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path} is no log of Inspect with samples; nothing was imported.") from None
    return log, iter(samples or ())


def _archive(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    header: dict[str, Any] = {}
    samples = []
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            for name in _HEADERS:
                if name in names:
                    header = {**json.loads(archive.read(name)), **header}
            samples = [
                json.loads(archive.read(name))
                for name in names
                if name.startswith("samples/") and name.endswith(".json")
            ]
    except NotImplementedError:
        raise UsageError(
            f"{path} is packed in a way that this Python cannot unpack; write it as JSON with 'inspect log "
            "convert --to json' and import that."
        ) from None
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, RuntimeError, TypeError) as error:
        raise UsageError(f"{path} is no whole log of Inspect ({error}); nothing was imported.") from None
    if "eval" not in header:
        raise UsageError(f"{path} is no log of Inspect; nothing was imported.")
    return header, iter(samples)


def _row(sample: Mapping[str, Any], score: str | None, where: str) -> SourceRow:
    if sample["id"] is None or type(sample["epoch"]) is not int:
        raise ValueError("no id or epoch")
    row = SourceRow(
        where=where,
        case=str(sample["id"]),
        trial=sample["epoch"],
        content=digest([sample.get("input"), sample.get("target"), sample.get("choices")]),
        start=None if sample.get("started_at") is None else moment(sample["started_at"]),
        duration=sample.get("total_time"),
        latency=sample.get("working_time"),
    )
    _usage(row, _dict(sample.get("model_usage")))
    scores = _dict(sample.get("scores")) or ({"score": sample["score"]} if sample.get("score") else {})
    _judge(row, scores, score)
    limit, error = sample.get("limit"), sample.get("error")
    if limit:
        row.completed = False
        if row.passed is None and row.score is None and row.outcome is None:
            row.outcome = "limit"
            row.failure_class = f"limit_{_dict(limit).get('type', 'unknown')}"
    if error:
        row.outcome, row.passed, row.score, row.completed = "error", None, None, None
        row.message = one_line(_dict(error).get("message", error))
    return row


def _judge(row: SourceRow, scores: Mapping[str, Any], wanted: str | None) -> None:
    if wanted is None and len(scores) > 1:
        raise ValueError(f"it has several scores; choose one with --score ({', '.join(scores)})")
    if wanted is not None and scores and wanted not in scores:
        raise ValueError(f"it has no score {wanted!r}, but {', '.join(scores)}")
    chosen = scores.get(wanted) if wanted is not None else next(iter(scores.values()), None)
    value = _dict(chosen).get("value")
    if isinstance(value, bool):
        row.passed = value
    elif isinstance(value, int | float):
        row.score = None if value != value else float(value)  # noqa: PLR0124 - NaN is no score
    elif isinstance(value, str):
        row.passed = _LETTERS.get(value)
        row.outcome = None if value in _LETTERS else value
    elif value is not None:
        raise ValueError("its score is neither a letter, a word nor a number")


def _usage(row: SourceRow, models: Mapping[str, Any]) -> None:
    """The tokens of a sample that one model served; of several it is not known which was the target."""
    if len(models) != 1:
        return
    usage = _dict(next(iter(models.values())))
    parts = [usage.get(n) for n in ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")]
    if isinstance(parts[0], int):
        row.tokens_in = sum(n for n in parts if isinstance(n, int))
    row.tokens_out = usage.get("output_tokens")
    if isinstance(usage.get("total_cost"), int | float):
        row.cost_usd, row.cost_basis = float(usage["total_cost"]), "estimated"


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
