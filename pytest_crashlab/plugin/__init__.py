"""The entry point that pytest loads: declares options and fixtures, and starts the rest when asked.

Nothing heavy is imported here: a session that does not use the plugin must not notice it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_crashlab.plugin.fixtures import trial as trial
from pytest_crashlab.plugin.options import add_options

if TYPE_CHECKING:
    from pytest_crashlab.plugin.start import Starter


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini keys."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks that other plugins may implement."""
    from pytest_crashlab import hookspec

    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start a run when an option, ini key or the xdist controller asks for one."""
    from pytest_crashlab.plugin.start import Starter

    starter: Starter = Starter(config)
    config.pluginmanager.register(starter, "crashlab-start")
    starter.configure()
