"""What is run: suites of published packages and plugins to run beside, as ``suites.toml`` names them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


class CompatError(Exception):
    """The job cannot do what it is for; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A published package with tests; ``source`` is where it is importable from, ``plugins`` entry points."""

    name: str
    version: str
    holds: str
    args: tuple[str, ...]
    plugins: tuple[str, ...]
    source: str

    def fetch(self, into: Path) -> Path:
        """Download and unpack the source distribution; its directory. Done once, by pip."""
        place = into / f"{self.name}-{self.version}"
        if place.is_dir():
            return next(path for path in place.iterdir() if path.is_dir())
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        downloads = into / "downloads" / self.name
        # Only this package from source: what builds it may come ready-made.
        asked = [
            "--no-deps",
            "--no-binary",
            self.name,
            "--dest",
            str(downloads),
            f"{self.name}=={self.version}",
        ]
        done = subprocess.run([*pip, *asked], capture_output=True, text=True, check=False)
        archives = sorted(downloads.glob("*.tar.gz"))
        if done.returncode != 0 or len(archives) != 1:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise CompatError(
                f"pip could not download the source of {self.name} {self.version} ({last}). Check that the "
                "package index is reachable and the version in compat/suites.toml is on it."
            )
        unfinished = into / f".{self.name}"
        with tarfile.open(archives[0]) as archive:
            archive.extractall(unfinished, filter="data")
        unfinished.rename(place)
        return self.fetch(into)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin to run beside, on a suite or on a file of ``probes/``."""

    name: str
    entry_points: tuple[str, ...]
    suite: str | None
    probe: str | None
    args: tuple[str, ...]
    shows: str


def read(path: Path = HERE / "suites.toml") -> tuple[list[Suite], list[Plugin]]:
    """Suites and plugins in the order of the file."""
    data = tomllib.loads(path.read_text("utf-8"))
    suites = [
        Suite(
            name=entry["name"],
            version=entry["version"],
            holds=entry["holds"],
            args=tuple(entry["args"]),
            plugins=tuple(entry.get("plugins", ())),
            source=entry.get("source", "."),
        )
        for entry in data["suite"]
    ]
    plugins = [
        Plugin(
            name=entry["name"],
            entry_points=tuple(entry["entry_points"]),
            suite=entry.get("suite"),
            probe=entry.get("probe"),
            args=tuple(entry["args"]),
            shows=entry.get("shows", ""),
        )
        for entry in data["plugin"]
    ]
    return suites, plugins
