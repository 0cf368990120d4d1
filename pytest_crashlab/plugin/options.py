"""Which options and ini keys there are, and whether a session uses any.

Read by every session: imports nothing. What they come to is in :mod:`pytest_crashlab.plugin.settings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# (flag, ini key or None, metavar, help): all of them are plain strings here and validated in
# ``settings.Settings.of``, so that a wrong value gets one sentence instead of argparse's usage text.
_VALUED = (
    ("--trials", "crashlab_trials", "N|off", "run every test N times; off: no trials, nothing recorded"),
    ("--trial-order", "crashlab_trial_order", "ORDER", "rounds (default): all cases once, then again; cases"),
    (
        "--crashlab-isolation",
        "crashlab_isolation",
        "HOW",
        "none (default); round: fresh worker processes for each round of trials (needs -n)",
    ),
    ("--baseline", "crashlab_baseline", "REF", "the run to compare with: a branch, a run id, release:X ..."),
    ("--save-baseline", None, "NAME", "promote this run to be the baseline NAME when the gate passes"),
    (
        "--min-pass-rate",
        "crashlab_min_pass_rate",
        "RATE",
        "fail below this pass rate over all cases (0.9, 90%%)",
    ),
    ("--crashlab-policy", "crashlab_policy", "NAME", "regressions (default), strict or report"),
    ("--crashlab-method", "crashlab_method", "NAME", "mid-p (default), exact or normal"),
    (
        "--crashlab-margin",
        "crashlab_margin",
        "POINTS",
        "the smallest drop that matters, in points of pass rate",
    ),
    ("--crashlab-release", "crashlab_release", "LABEL", "the release this run measures"),
    ("--crashlab-prompt", "crashlab_prompt", "NAME@VERSION", "the prompt this run measures"),
    ("--crashlab-model", "crashlab_model", "NAME", "the model this run measures"),
    (
        "--crashlab-outcome",
        "crashlab_outcome",
        "LABELS",
        "compare how often these outcomes occur (labels, with commas between)",
    ),
    ("--crashlab-split", None, "SPLIT", "the side of data sets with a holdout: dev (default) or holdout"),
    ("--crashlab-dataset-sample", None, "N", "only N rows of each data set, drawn by the run's seed"),
    ("--crashlab-run-name", None, "TEXT", "a name for this run"),
    ("--crashlab-external-id", None, "TEXT", "your own key for this run"),
    ("--crashlab-seed", "crashlab_seed", "N|baseline", "fix the run's seed; baseline: share the baseline's"),
    (
        "--crashlab-store",
        "crashlab_store",
        "DIR",
        "where runs are kept (default: .crashlab; or CRASHLAB_STORE)",
    ),
    (
        "--crashlab-budget",
        "crashlab_budget",
        "AMOUNTS",
        "start no trial that would go beyond it: 5usd, 200000tokens, 30m (commas between)",
    ),
    ("--crashlab-resume", None, "RUN", "go on with a run: only its planned trials without a decision"),
    (
        "--crashlab-report",
        "crashlab_report",
        "PATHS",
        "write reports, as their names end: .md, .json, .xml (JUnit), .codequality.json (commas between)",
    ),
    ("--crashlab-junit", "crashlab_junit", "PATH", "write JUnit XML with one test case per case"),
    (
        "--crashlab-baseline-missing",
        "crashlab_baseline_missing",
        "HOW",
        "gate (default): no verdict; note: go on",
    ),
    (
        "--crashlab-retries",
        "crashlab_retries",
        "N",
        "how often a model is asked again after a failure of the instrument (default: 2)",
    ),
    (
        "--crashlab-record",
        None,
        "DIR",
        "write what the models of each trial are asked and answer into DIR, without secrets",
    ),
    (
        "--crashlab-replay",
        None,
        "DIR",
        "answer models' requests from DIR, without any network; such a run gives no verdict",
    ),
    (
        "--crashlab-unsupported",
        "crashlab_unsupported",
        "HOW",
        "a test that cannot be repeated: error (default); once",
    ),
    (
        "--crashlab-sandbox",
        "crashlab_sandbox",
        "NAME",
        "bubblewrap, docker or local, and limits: 'bubblewrap memory=512M' (default: the strongest here)",
    ),
)
_MODELS = (
    "crashlab_provider",
    "the models of tests, one a line, the default one first: openai:gpt-x, or critic = anthropic:claude-x",
)
_CONFIG = (
    "--crashlab-config",
    "crashlab_config",
    "KEY=VALUE",
    "a setting of what is measured, for the fixture run_config",
)
_SWITCHES = (
    ("--crashlab-from-branch", "let a run of another branch be promoted by --save-baseline"),
    (
        "--crashlab-watch-state",
        "tell which names of the project's modules trials change for those after them",
    ),
)


_LISTS = (
    _MODELS,
    ("crashlab_target", "files, folders or globs of what is measured: they tell a change from a control"),
    ("crashlab_evaluation", "files, folders or globs of what measures it: tests, data sets, judges"),
    ("crashlab_exceptions", "one 'module.Exception = label' a line: the outcome of a test that raises it"),
)

# What is no option: how things are kept, not what a session does.
_LIMIT = ("crashlab_attachment_limit", "how large one attachment of a trial may be: 500k, 1M (default)")
_LOCALS = ("crashlab_evidence_locals", "keep the values of local variables with a stored traceback")


_KEYS = (("crashlab_outcomes", "the vocabulary of tests that name none: package.module:NAME"),)


def add_options(parser: pytest.Parser) -> None:
    """Declare the options and ini keys; nothing heavy is imported."""
    group = parser.getgroup("crashlab", "repeated trials and a gate on a stored baseline")
    for flag, ini, metavar, text in _VALUED:
        group.addoption(flag, action="store", default=None, metavar=metavar, help=text)
        if ini is not None:
            parser.addini(ini, f"{text.replace('%%', '%')} ({flag})", default=None)
    flag, ini, metavar, text = _CONFIG
    group.addoption(flag, action="append", default=None, metavar=metavar, help=text)
    parser.addini(ini, f"{text}, one a line ({flag})", type="linelist", default=[])
    for flag, text in _SWITCHES:
        group.addoption(flag, action="store_true", default=False, help=text)
    for key, text in _KEYS:
        parser.addini(key, text, default=None)
    for key, text in _LISTS:
        parser.addini(key, text, type="linelist", default=[])
    parser.addini(*_LIMIT, default="1M")
    parser.addini(*_LOCALS, type="bool", default=False)


# Flags that change where or how, but ask for no trials by themselves; and the ini keys that do ask.
_PASSIVE = frozenset(
    {
        "--crashlab-store",
        "--crashlab-unsupported",
        "--trial-order",
        "--crashlab-isolation",
        "--crashlab-retries",
        "--crashlab-split",
        "--crashlab-sandbox",
        "--crashlab-budget",
    }
)
_STARTERS = (
    "crashlab_trials",
    "crashlab_baseline",
    "crashlab_min_pass_rate",
    "crashlab_junit",
    "crashlab_report",
)


def is_anything_asked(config: pytest.Config) -> bool:
    """Whether an option or ini key asks for trials, a baseline, a threshold or a record."""
    flags = (flag for flag, *_ in _VALUED if flag not in _PASSIVE)
    return (
        any(config.getoption(flag) is not None for flag in flags)
        or any(config.getini(key) not in (None, "") for key in _STARTERS)
        or config.getoption(_CONFIG[0]) is not None
        or config.getoption("--crashlab-split") == "holdout"  # every look is recorded, to be counted
    )


def is_anything_set(config: pytest.Config) -> bool:
    """Whether an option or ini key of ours has a value at all."""
    flags = [flag for flag, *_ in (*_VALUED, *_SWITCHES, _CONFIG)]
    keys = [key for _, key, *_ in (*_VALUED, _CONFIG) if key is not None] + [key for key, _ in _KEYS + _LISTS]
    return any(config.getoption(flag) not in (None, False) for flag in flags) or any(
        config.getini(key) for key in keys
    )
