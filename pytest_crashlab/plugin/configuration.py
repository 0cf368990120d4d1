"""What a session declares of the system under test beside its files: ``--crashlab-config``."""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pytest

OPTION, INI = "--crashlab-config", "crashlab_config"


def declared_config(config: pytest.Config) -> Mapping[str, str]:
    """The declared values by name; the option's win over the ini file's.

    Raises ``UsageError`` for one that is not ``key=value`` or that one source gives two values.
    """
    given = config.getoption(OPTION) or ()
    return MappingProxyType({**_pairs(config.getini(INI), INI), **_pairs(given, OPTION)})


def stored_config(config: pytest.Config) -> dict[str, str]:
    """The declared values as a manifest keeps them: sorted, without secrets."""
    values = declared_config(config)
    if not values:
        return {}
    from pytest_crashlab.plugin.redacting import redactor_of

    clean: dict[str, str] = redactor_of(config).within(dict(sorted(values.items())))
    return clean


def config_digest(stored: Mapping[str, str]) -> str | None:
    """A digest of the values as they are stored, None without one: another secret is no other setting."""
    if not stored:
        return None
    text = json.dumps(sorted(stored.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _pairs(lines: Iterable[str], blame: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        key, equals, value = (part.strip() for part in line.partition("="))
        if not key or not equals:
            raise UsageError(f"{blame} has {line!r}; write key=value")
        if found.setdefault(key, value) != value:
            raise UsageError(
                f"{blame} gives {key!r} two values, {found[key]!r} and {value!r}; keep one of them"
            )
    return found
