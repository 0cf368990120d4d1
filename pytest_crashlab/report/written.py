"""Reports that go to files: which format a name asks for, and what a CI service gets by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crashlab.errors import CrashlabError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_crashlab.report import views
    from pytest_crashlab.store import StoredRun

FORMATS = (".codequality.json", ".json", ".md", ".xml")


def format_of(name: str) -> str:
    """The ending that says how a report is written; `UsageError` for any other name."""
    found = next((ending for ending in FORMATS if name.endswith(ending)), None)
    if found is None:
        raise UsageError(
            f"--crashlab-report={name} names no format; end it in .md, .json, .xml or .codequality.json"
        )
    return found


def write_reports(reports: Sequence[tuple[Path, str]], run: StoredRun, view: views.SessionView) -> list[str]:
    """Write ``view`` to each path in its format; return what could not be written, in sentences."""
    problems = []
    for path, ending in reports:
        try:
            _write(path, ending, run, view)
        except OSError as error:
            problems.append(
                f"The report {path} cannot be written ({error.strerror or error}); name another path."
            )
        except CrashlabError as error:
            problems.append(str(error))
    return problems


def append_summary(path: Path, view: views.SessionView) -> str | None:
    """Add ``view`` to the page that a CI service shows for a step; return what kept it from being added."""
    from pytest_crashlab.report.markdown import SUMMARY_LIMIT, session_markdown, shorten_bytes

    document = shorten_bytes(session_markdown(view, most_characters=SUMMARY_LIMIT), SUMMARY_LIMIT)
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(f"{document}\n")
    except OSError as error:
        return f"The summary {path} cannot be written ({error.strerror or error})."
    return None


def places(run: StoredRun) -> dict[str, tuple[str | None, int | None]]:
    """File and line of each case."""
    return {case: (file, line) for case, file, line in run.cases.select("case", "file", "line").iter_rows()}


def _write(path: Path, ending: str, run: StoredRun, view: views.SessionView) -> None:
    if ending == ".xml":
        from pytest_crashlab.report.junit import write_junit

        write_junit(path, run, view)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_document(ending, run, view), encoding="utf-8", newline="\n")


def _document(ending: str, run: StoredRun, view: views.SessionView) -> str:
    if ending == ".md":
        from pytest_crashlab.report.markdown import session_markdown

        return session_markdown(view)
    if ending == ".json":
        from pytest_crashlab.report.json import dumps, session_json

        return f"{dumps(session_json(view, most_cases=None))}\n"
    from pytest_crashlab.report.annotations import annotations_of, gitlab_json

    return f"{gitlab_json(annotations_of(view, places(run)))}\n"
