"""A line of text: what labels, names of checks and the like have to be, so that a table can hold them."""

from __future__ import annotations

from typing import TypeGuard

LONGEST_LINE = 200


def is_line(value: object) -> TypeGuard[str]:
    """Whether ``value`` is text of 1 to 200 printable characters, not all of them blanks."""
    return (
        isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= LONGEST_LINE
    )
