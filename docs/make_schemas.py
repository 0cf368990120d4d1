"""Write the JSON Schemas of what ``--json`` prints, from the views that it is made of.

``python docs/make_schemas.py`` writes ``pytest_crashlab/report/schemas`` anew; a test holds that it is up to
date. A new output is one more line of ``SCHEMAS``.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from pytest_crashlab.cli.doctor import Finding
from pytest_crashlab.compare import usage
from pytest_crashlab.compare.planning import Design
from pytest_crashlab.records.classification import BUILTIN_EXCEPTIONS
from pytest_crashlab.records.comparison import ClaimKind, Policy, Word
from pytest_crashlab.records.outcome import Kind
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.records.trial import Phase
from pytest_crashlab.report import case_diff, checks, evidence, history, rows, views, words
from pytest_crashlab.report import json as report_json
from pytest_crashlab.report.difference import SHOWN
from pytest_crashlab.store.schema import trial_columns

FOLDER = Path(__file__).resolve().parents[1] / "pytest_crashlab" / "report" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = {"views": views, "CheckLineView": checks.CheckLineView, "Usage": usage.Usage}
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}
COUNT = {"type": "integer", "minimum": 0}
TEXTS = {"type": "array", "items": {"type": "string"}}
SIGNS = (-1, 0, 1)
# The values of a field that has few, by class and field.
VALUES: dict[str, tuple[Any, ...]] = {
    "RunView.status": tuple(RunStatus),
    "RunLineView.status": tuple(RunStatus),
    "RunLineView.word": tuple(Word),
    "BaselineLineView.status": tuple(RunStatus),
    "OutcomeView.kind": tuple(Kind),
    "AssignmentView.kind": tuple(Kind),
    "SideView.kind": tuple(Kind),
    "TrialLineView.kind": (*Kind, "missing"),
    "TrialLineView.phase": tuple(Phase),
    "PhaseView.name": tuple(Phase),
    "CaseView.outcome": ("All pass", "Flip", "Never", "Incomplete", "Skipped"),
    "ComparedCaseView.proven": SIGNS,
    "CaseDiffView.proven": SIGNS,
    "CaseDiffView.shown": tuple(SHOWN),
    "DiffView.shown": tuple(SHOWN),
    "DeltaView.proven": SIGNS,
    "DeltaView.group": ("rate", "check", "outcome", "measure"),
    "VerdictView.word": tuple(Word),
    "VerdictView.claim": tuple(ClaimKind),
    "GateView.policy": tuple(Policy),
    "Words.mark": (words.SAME, words.REMOVED, words.ADDED, words.LEFT_OUT),
}


@dataclass(frozen=True, kw_only=True)
class Output:
    """One kind of output: its ``version``, what prints it, and the view it is (``of``) or holds (``holds``).

    ``added`` what stands beside the fields of a class, ``without`` those that are left out, both by the
    name of the class; "" is the output itself.
    """

    version: int
    prints: str
    of: type | None = None
    holds: dict[str, Any] = field(default_factory=dict)
    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    without: dict[str, set[str]] = field(default_factory=dict)


def schema_of(name: str, output: Output) -> dict[str, Any]:
    """The whole schema of ``output``."""
    made = _Made(output)
    marks = {"schema": {"const": f"crashlab.{name}"}, "version": {"const": output.version}}
    body = made.fields(output.of) if output.of else {}
    held = {key: made.value(hint) for key, hint in output.holds.items()}
    whole = {
        "$schema": DIALECT,
        "$id": f"urn:pytest-crashlab:schema:{name}:{output.version}",
        "title": f"crashlab.{name}",
        "description": output.prints,
        **_closed({**marks, **body, **held, **output.added.get("", {})}),
    }
    return whole | ({"$defs": dict(sorted(made.defined.items()))} if made.defined else {})


class _Made:
    """The parts of one schema, each class once."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.defined: dict[str, Any] = {}

    def fields(self, cls: type) -> dict[str, Any]:
        """What the fields of a view may hold."""
        hints = typing.get_type_hints(cls, localns=NAMES)
        left_out = self.output.without.get(cls.__name__, set())
        told = [f.name for f in fields(cls) if f.name not in left_out]
        made = {name: self._field(f"{cls.__name__}.{name}", hints[name]) for name in told}
        return made | self.output.added.get(cls.__name__, {})

    def _field(self, name: str, hint: Any) -> dict[str, Any]:
        made = self.value(hint)
        if name not in VALUES:
            return made
        null = [None] if types.NoneType in typing.get_args(hint) else []
        return {**made, "enum": [*(getattr(v, "value", v) for v in VALUES[name]), *null]}

    def value(self, hint: Any) -> dict[str, Any]:
        """What JSON a type becomes; a dict that is one already stays."""
        if isinstance(hint, dict):
            return hint
        if hint is Any:
            return {}
        if hint in PLAIN:
            return {"type": PLAIN[hint]}
        if is_dataclass(hint):
            return self._reference(hint)
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in {types.UnionType, typing.Union}:
            return _either([self.value(part) for part in inner])
        if origin is dict:
            return {"type": "object", "additionalProperties": self.value(inner[1])}
        if origin is tuple and inner[-1] is not ...:
            items = [self.value(part) for part in inner]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
        if origin in {tuple, list}:
            return {"type": "array", "items": self.value(inner[0])}
        raise TypeError(f"docs/make_schemas.py does not know what JSON {hint} becomes")

    def _reference(self, cls: Any) -> dict[str, Any]:
        name = cls.__name__
        if name not in self.defined:
            self.defined[name] = {}  # known before its fields are, should they lead back to it
            said = " ".join((inspect.getdoc(cls) or "").split()).replace("``", "`")
            self.defined[name] = {"description": said, **_closed(self.fields(cls))}
        return {"$ref": f"#/$defs/{name}"}


def _either(parts: list[dict[str, Any]]) -> dict[str, Any]:
    if all(set(part) == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with these fields, all of them, and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _row() -> dict[str, Any]:
    """A stored row of a trial, all columns."""
    never_null = {"case", "trial", "attempt", "deciding"}
    return _closed(
        {name: _column(dtype, null=name not in never_null) for name, dtype in trial_columns().items()}
    )


def _column(dtype: Any, *, null: bool) -> dict[str, Any]:
    kinds = {"String": "string", "Enum": "string", "Boolean": "boolean", "Float64": "number"}
    name = type(dtype).__name__
    kind = "integer" if dtype.is_integer() else kinds[name]
    made: dict[str, Any] = {"type": [kind, "null"] if null else kind}
    if name == "Enum":
        made["enum"] = [*dtype.categories.to_list(), *([None] if null else [])]
    return made


_LABEL = _closed(
    {
        "label": {"type": "string"},
        "kind": {"enum": [kind.value for kind in Kind]},
        "definition": {"type": "string"},
        "completed": {"type": ["boolean", "null"]},
    }
)
_VERSION = report_json.VERSION
SCHEMAS = {
    "baselines": Output(
        version=_VERSION,
        prints="What 'crashlab baseline list --json' prints.",
        holds={"baselines": tuple[views.BaselineLineView, ...]},
    ),
    "builtin_outcomes": Output(
        version=_VERSION,
        prints="What 'crashlab outcomes --json' prints.",
        holds={
            "exceptions": _closed({n: {"type": "string"} for n in BUILTIN_EXCEPTIONS}),
            "outcomes": {"type": "array", "items": _LABEL},
        },
    ),
    "case_diff": Output(
        version=case_diff.VERSION,
        prints="What 'crashlab diff A B --case ID --json' prints.",
        of=case_diff.CaseDiffView,
    ),
    "diff": Output(
        version=_VERSION,
        prints="What 'crashlab diff A B --json' prints.",
        of=views.DiffView,
        without={"VerdictView": {"cases"}},
    ),
    "doctor": Output(
        version=1, prints="What 'crashlab doctor --json' prints.", holds={"findings": tuple[Finding, ...]}
    ),
    "history": Output(
        version=1,
        prints="What 'crashlab history CASE --json' prints.",
        holds={"case": str, "more": COUNT, "runs": tuple[history.HistoryLineView, ...]},
        added={"HistoryLineView": {"share": {"type": ["number", "null"]}}},
        without={"HistoryLineView": {"content", "pass_rule"}},
    ),
    "inspect": Output(version=1, prints="What 'crashlab inspect RUN --json' prints.", of=rows.InspectionView),
    "outcomes": Output(
        version=_VERSION, prints="What 'crashlab outcomes RUN --json' prints.", of=views.OutcomesView
    ),
    "plan": Output(
        version=_VERSION,
        prints="What 'crashlab plan --json' prints.",
        of=Design,
        added={"": {"sentences": TEXTS}},
    ),
    "runs": Output(
        version=_VERSION,
        prints="What 'crashlab runs --json' prints.",
        holds={"runs": tuple[views.RunLineView, ...], "problems": TEXTS},
    ),
    "session": Output(
        version=_VERSION,
        prints="What 'crashlab view RUN --json', 'crashlab gate RUN --json' and "
        "'pytest --crashlab-report=PATH.json' write.",
        of=views.SessionView,
        added={"": {"cases_total": COUNT}, "OutcomeView": {"sites_total": COUNT}},
    ),
    "trial": Output(
        version=evidence.VERSION,
        prints="What 'crashlab view RUN --case ID --trial N --json' and the same with --raw print.",
        of=evidence.TrialView,
        added={"TrialView": {"row": _row()}},
    ),
}


def files() -> dict[str, str]:
    """The name and text of every file."""
    return {
        f"{name}.v{output.version}.json": json.dumps(schema_of(name, output), indent=2) + "\n"
        for name, output in SCHEMAS.items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text, "utf-8")
