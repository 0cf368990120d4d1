"""Every exception this package raises on purpose.

::

    CrashlabError
    ├── UsageError            an option, marker or argument that cannot be followed      exit 4
    │   └── BaselineError     an explicit baseline that is not there or may not be used  exit 4
    ├── StoreError            the store cannot be read or written
    │   ├── CorruptRun        a file of a run does not hold what it should
    │   ├── FormatTooNew      a later version wrote this
    │   └── PromotionConflict another session promoted first                             exit 1
    ├── BadInput              numbers that cannot be counted with; a ValueError as well   exit 4
    └── InstrumentFailure     raised by a test or a plugin: the instrument failed, not the target

Messages are one sentence that says what is wrong, where, and what to do.
"""

from __future__ import annotations


class CrashlabError(Exception):
    """Base of all of them."""


class UsageError(CrashlabError):
    """An option, marker or argument that cannot be followed."""


class BaselineError(UsageError):
    """An explicit baseline that is not there or may not be used."""


class StoreError(CrashlabError):
    """The store cannot be read or written."""


class CorruptRun(StoreError):
    """A file of a run does not hold what it should."""


class FormatTooNew(StoreError):
    """A later version of the package wrote this store or run."""


class PromotionConflict(StoreError):
    """Another session promoted a run under the same name first."""


class BadInput(CrashlabError, ValueError):
    """An argument that cannot be counted with; the message names it and where it goes wrong."""


class InstrumentFailure(CrashlabError):
    """The instrument failed, not the target: the trial ends with ``label`` and gives no decision."""

    def __init__(self, label: str, message: str = "") -> None:
        super().__init__(message or label)
        self.label = label
