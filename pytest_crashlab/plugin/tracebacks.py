"""Exceptions as text: what pytest shows of them, with the values of local variables only when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

# Styles of --tb that show where an exception came from.
_WHOLE = ("auto", "long", "short", "native")


class Tracebacks:
    """Makes the stored form of a failure; ``show_locals`` the values of local variables as well."""

    def __init__(self, config: pytest.Config, *, show_locals: bool) -> None:
        # These are options of pytest's terminal, which a session may leave out.
        shown = config.getoption("showlocals", default=False)
        style = config.getoption("tbstyle", default="auto")
        self._locals = show_locals
        self._own = show_locals != shown or style not in _WHOLE

    def failure(
        self, item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], report: pytest.TestReport
    ) -> dict[str, Any]:
        """The phase of pytest that failed, type and message of the exception, and its traceback."""
        kind = excinfo.type
        home = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        return {
            "phase": report.when,
            "type": f"{home}{kind.__qualname__}",
            "message": _message(excinfo.value),
            "traceback": self._text(item, excinfo, report),
        }

    def _text(
        self, item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], report: pytest.TestReport
    ) -> str:
        if not self._own or not hasattr(report.longrepr, "reprcrash"):
            return report.longreprtext
        # pytest's own filter leaves out what is pytest and not the test
        shorten: Any = getattr(item, "_traceback_filter", True)
        try:
            return str(excinfo.getrepr(style="long", showlocals=self._locals, tbfilter=shorten))
        except Exception:  # noqa: BLE001 - a repr of the test's own that raises
            return report.longreprtext


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - a message that cannot be made is no reason to fail
        return f"[its message cannot be shown: {type(second).__name__}]"
