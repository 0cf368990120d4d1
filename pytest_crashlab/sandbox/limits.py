"""How much a command may use, and what reaching a limit means."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from pytest_crashlab.errors import UsageError
from pytest_crashlab.sandbox.base import hides_itself

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_crashlab.sandbox.base import Network

__tracebackhide__ = hides_itself
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZES = frozenset({"memory", "file_size", "disk", "output"})
_SECONDS = frozenset({"wall_clock", "cpu"})
_LEAST_MEMORY = 4 << 20
_MOST_BYTES = 1 << 60  # what the kernel, bubblewrap and a daemon all take
_MOST_SECONDS = float(1 << 31)
_MOST = {"processes": 1 << 22, "output": 1 << 30}
_PULLS = ("never", "missing", "always")
_CHOICES = {"network": ("off", "loopback", "on"), "limit_is": ("machine", "target")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a command; None: no limit, for ``network``: the backend's own default.

    ``wall_clock`` and ``cpu`` in seconds (CPU of each process), ``memory``, ``file_size`` (each file),
    ``disk`` (all files together) and ``output`` (each stream; what is beyond is dropped) in bytes,
    ``processes`` at one time. ``limit_is``: whether reaching a limit is the machine's doing, which
    gives no decision, or the ``target``'s own.
    """

    wall_clock: float | None = 60.0
    cpu: float | None = None
    memory: int | None = 1 << 30
    processes: int | None = 256
    file_size: int | None = 256 << 20
    disk: int | None = 512 << 20
    output: int = 1 << 20
    network: Network | None = None
    limit_is: Literal["machine", "target"] = "machine"

    def but(self, given: Mapping[str, Any], where: str) -> Limits:
        """These with what ``given`` names; raises ``UsageError`` that blames ``where``.

        ``timeout`` is another word for ``wall_clock``.
        """
        known = {f.name for f in fields(self)}
        changes: dict[str, Any] = {}
        for word, value in given.items():
            name = "wall_clock" if word == "timeout" else word
            if name not in known:
                raise UsageError(
                    f"{where}: sandbox has no limit {word!r}; choose of {', '.join(sorted(known))}"
                )
            if name in changes:
                raise UsageError(f"{where}: timeout and wall_clock are one limit; write it once")
            changes[name] = _value(name, value, where, word)
        return replace(self, **changes)

    def text(self, name: str) -> str:
        """The limit ``name`` as it may be written: ``512M``, ``30``, ``none``."""
        value = getattr(self, name)
        if value is None or isinstance(value, str):
            return str(value or "none")
        if name not in _SIZES:
            return f"{value:g}"
        unit = next(unit for unit in ("g", "m", "k", "") if value % _UNITS[unit] == 0)
        return f"{value // _UNITS[unit]}{unit.upper() if unit != 'k' else unit}"


def _value(name: str, value: object, where: str, word: str) -> object:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise UsageError(f"{where}: {name}={value!r} is not known; choose of {', '.join(_CHOICES[name])}")
        return value
    if value is None or value == "none":
        if name == "output":
            raise UsageError(f"{where}: output needs a limit; write for example output=4M")
        return None
    most = _MOST.get(name, _MOST_SECONDS if name in _SECONDS else _MOST_BYTES)
    number = _size(value) if name in _SIZES else _number(value, whole=name not in _SECONDS)
    if number is not None and number > most:
        raise UsageError(f"{where}: {word}={value!r} is more than can be limited; write None for no limit")
    if number is None or number <= 0:
        example = "512M" if name in _SIZES else "30"
        raise UsageError(f"{where}: {word}={value!r} is no limit; write for example {word}={example}")
    if name == "memory" and number < _LEAST_MEMORY:
        raise UsageError(
            f"{where}: memory={value!r} is {number:.0f} bytes, and nothing starts with less than 4M; "
            "write for example memory=512M"
        )
    return number


def _size(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = re.fullmatch(r"(\d+)\s*([kmg]?)(?:i?b)?", str(value).strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found else None


def _number(value: object, *, whole: bool) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(str(value))
    except ValueError:
        return None
    if not math.isfinite(number) or (whole and number != int(number)):
        return None
    return int(number) if whole else number


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a marker or the ini asks for: a backend (None: the strongest here), limits, paths to read.

    ``image`` and ``pull`` (when it is fetched) are for backends of containers.
    """

    backend: str | None = None
    limits: Limits = Limits()
    readable: tuple[str, ...] = ()
    image: str | None = None
    pull: Literal["never", "missing", "always"] = "missing"

    def but(self, given: object, where: str) -> Wanted:
        """Return it with what ``given`` says: ``"bubblewrap memory=512M"``, or a mapping of such names."""
        settings = _words(given, where) if isinstance(given, str) else given
        if not isinstance(settings, dict):
            raise UsageError(f"{where}: sandbox={given!r} is unknown; write 'local' or {{'cpu': 5}}")
        limits = {k: v for k, v in settings.items() if k not in ("backend", "readable", "image", "pull")}
        readable = settings.get("readable", self.readable)
        if isinstance(readable, str):
            readable = tuple(part for part in readable.split(":") if part)
        image = settings.get("image", self.image)
        if image is not None and (not isinstance(image, str) or not image.strip()):
            raise UsageError(f"{where}: image={image!r} is none; write for example image=python:3.12-slim")
        return Wanted(
            backend=settings.get("backend", self.backend),
            limits=self.limits.but(limits, where),
            readable=tuple(str(path) for path in readable),
            image=image,
            pull=_pull(settings.get("pull", self.pull), where),
        )


def _pull(value: Any, where: str) -> Any:
    if value not in _PULLS:
        raise UsageError(f"{where}: pull={value!r} is not known; choose of {', '.join(_PULLS)}")
    return value


def _words(text: str, where: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals:
            name, value = "backend", word
        if name in settings:
            raise UsageError(f"{where}: sandbox names {name} twice in {text!r}; write it once")
        settings[name] = value
    return settings
