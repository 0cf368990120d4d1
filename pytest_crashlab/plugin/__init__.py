"""The entry point that pytest loads: declares options and fixtures, and starts the rest when asked.

Nothing heavy is imported here: a session that does not use the plugin must not notice it.
"""

from __future__ import annotations

import pytest

from pytest_crashlab.plugin import marker_names, process
from pytest_crashlab.plugin.fixtures import judge as judge
from pytest_crashlab.plugin.fixtures import provider as provider
from pytest_crashlab.plugin.fixtures import row as row
from pytest_crashlab.plugin.fixtures import run_config as run_config
from pytest_crashlab.plugin.fixtures import sandbox as sandbox
from pytest_crashlab.plugin.fixtures import trial as trial
from pytest_crashlab.plugin.options import add_options, is_anything_set
from pytest_crashlab.plugin.watch import Watch

_TOLD = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini keys."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks that other plugins may implement."""
    from pytest_crashlab import hookspec

    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start a run when an option or ini key asks for one; else watch for a marker that does."""
    marker_names.register_markers(config)
    if any(arg.endswith("]") and "trial" in arg for arg in config.args):
        from pytest_crashlab.plugin.trial_ids import TrialIdHint

        config.pluginmanager.register(TrialIdHint(config.args), "crashlab-trial-ids")
    if is_anything_set(config):
        from pytest_crashlab.plugin.start import start

        start(config)
    else:
        config.pluginmanager.register(Watch(config), "crashlab-start")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one case per row of a test that is marked with a data set."""
    if any("dataset" in mark.kwargs for mark in metafunc.definition.iter_markers("crashlab")):
        from pytest_crashlab.plugin.datasets import parametrize

        parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Read what tests ask of their sandbox before the first one runs; without such a test, import nothing."""
    if any("sandbox" in getattr(item, "fixturenames", ()) for item in session.items):
        from pytest_crashlab.plugin.sandboxes import prepare

        prepare(session.config, session.items)


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(config: pytest.Config, data: dict[str, object]) -> None:
    """On the controller: name the sandbox that a worker's first report tells of, each one once."""
    lines = data.pop(process.SANDBOX, None)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not isinstance(lines, list) or reporter is None:
        return
    told = config.stash.setdefault(_TOLD, set())
    new = [str(line) for line in lines if line not in told]
    told.update(new)
    if new:
        reporter.ensure_newline()
    for line in new:
        reporter.write_line(line)
