"""Hold real test suites, and other plugins, to three trials: ``python compat/run.py``.

Takes the source distributions that ``suites.toml`` names from the package index, runs each suite
without trials and with three, in one process and in two, and compares what pytest counts. Exit 1,
with a table of differences, when three trials are not exactly three times the plain counts. With
``--peers`` the other plugins that repeat tests run on the same suites; with ``--docs`` the
measured tables go into docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import catalogue
import sessions
import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from catalogue import Plugin, Suite
    from sessions import Counts

ROOT = catalogue.HERE.parent
K = 3
PEERS = {
    "pytest-repeat": ("repeat", [f"--count={K}"]),
    "pytest-flakefinder": ("flakefinder", ["--flake-finder", f"--flake-runs={K}"]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One suite, or one plugin, and what each of its sessions counted."""

    name: str
    version: str
    about: str
    sessions: dict[str, Counts] = field(default_factory=dict)
    peers: dict[str, Counts] = field(default_factory=dict)

    def differences(self) -> list[tuple[str, str, str, str]]:
        """``(name, session, expected, counted)`` of each session that is not what it has to be."""
        plain = self.sessions["plain"]
        if not plain.clean:
            return [(self.name, "plain", "passes without trials", str(plain))]
        found = []
        for session, counts in self.sessions.items():
            expected = plain.times(1 if session.startswith("plain") else K)
            if not counts.clean or counts.numbers != expected:
                wanted = ", ".join(f"{number} {word}" for word, number in expected.items())
                found.append((self.name, session, wanted, str(counts)))
        return found


class Job:
    """Runs what the catalogue names, each check in a copy of its sources that nothing else writes to."""

    def __init__(self, sources: Path, scratch: Path, *, peers: bool) -> None:
        self.sources = sources
        self.scratch = scratch
        self.peers = peers

    def suite(self, suite: Suite) -> Checked:
        """Run one suite."""
        checked = Checked(name=suite.name, version=suite.version, about=suite.holds)
        place = self._copy(suite, suite.name)
        source = place / suite.source

        def session(args: Sequence[str], plugins: Sequence[str]) -> Counts:
            return sessions.run(
                place, [*suite.args, *args], source=source, plugins=[*suite.plugins, *plugins]
            )

        self._run_four(checked, session)
        if self.peers:
            for peer, (entry_point, on) in PEERS.items():
                checked.peers[peer] = session(["-n0", *on], [entry_point])
        return checked

    def plugin(self, plugin: Plugin, suites: dict[str, Suite]) -> Checked:
        """Run one plugin's suite or probe beside it."""
        if plugin.suite is not None:
            suite = suites[plugin.suite]
            place = self._copy(suite, plugin.name)
            source = place / suite.source
            args, entry_points = [*suite.args, *plugin.args], [*suite.plugins, *plugin.entry_points]
            about = suite.name
        else:
            place = self.scratch / plugin.name
            shutil.copytree(catalogue.HERE / "probes", place)
            (place / "pytest.ini").write_text("[pytest]\n", "utf-8")  # the end of the search upwards
            source = None
            about = f"probes/{plugin.probe}"
            args, entry_points = [str(plugin.probe), *plugin.args], list(plugin.entry_points)
        checked = Checked(name=plugin.name, version=version(plugin.name), about=plugin.shows or about)
        self._run_four(
            checked,
            lambda more, plugins: sessions.run(
                place, [*args, *more], source=source, plugins=[*entry_points, *plugins]
            ),
        )
        return checked

    def _run_four(self, checked: Checked, session: Callable[[Sequence[str], Sequence[str]], Counts]) -> None:
        trials = [f"--trials={K}", f"--crashlab-store={self.scratch / 'stores' / checked.name}"]
        checked.sessions["plain"] = session(["-n0"], [])
        checked.sessions["plain -n2"] = session(["-n2"], [])
        checked.sessions[f"×{K} -n0"] = session(["-n0", *trials], ["crashlab"])
        checked.sessions[f"×{K} -n2"] = session(["-n2", *trials], ["crashlab"])
        print(f"{checked.name}: {'; '.join(f'{k}: {v}' for k, v in checked.sessions.items())}", flush=True)

    def _copy(self, suite: Suite, name: str) -> Path:
        place = self.scratch / name
        shutil.copytree(suite.fetch(self.sources), place)
        return place


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; 0 when everything holds, 1 for differences, 2 when it could not be done."""
    parser = argparse.ArgumentParser(prog="compat/run.py", description=str(__doc__).partition("\n\n")[0])
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="this suite or plugin alone"
    )
    parser.add_argument("--peers", action="store_true", help="run pytest-repeat and pytest-flakefinder too")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/compatibility.md")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="checks at once (default: 2)")
    parser.add_argument("--sources", type=Path, default=ROOT / ".compat", help="where sources are kept")
    options = parser.parse_args(argv)
    suites, plugins = catalogue.read()
    by_name = {suite.name: suite for suite in suites}
    known = [*by_name, *(plugin.name for plugin in plugins)]
    unknown = [name for name in options.only if name not in known]
    if unknown:
        parser.error(f"there is no {unknown[0]} in suites.toml; it has {', '.join(known)}")
    if options.docs and (options.only or not options.peers):
        parser.error("--docs needs the whole measurement: give --peers, and leave --only out")
    wanted = set(options.only or known)
    sources: Path = options.sources.resolve()
    sources.mkdir(parents=True, exist_ok=True)
    (sources / ".gitignore").write_text("*\n", "utf-8")
    needed = [
        suite
        for suite in suites
        if suite.name in wanted or any(p.suite == suite.name for p in plugins if p.name in wanted)
    ]
    with (
        tempfile.TemporaryDirectory(prefix="compat-", ignore_cleanup_errors=True) as scratch,
        ThreadPoolExecutor(max(options.jobs, 1)) as pool,
    ):
        try:
            list(pool.map(lambda suite: suite.fetch(sources), needed))
        except catalogue.CompatError as error:
            print(f"compat: {error}", file=sys.stderr)
            return 2
        job = Job(sources, Path(scratch), peers=options.peers)
        ran = [pool.submit(job.suite, suite) for suite in suites if suite.name in wanted]
        beside = [pool.submit(job.plugin, plugin, by_name) for plugin in plugins if plugin.name in wanted]
        of_suites = [future.result() for future in ran]
        of_plugins = [future.result() for future in beside]
    print(tables.text(of_suites, of_plugins))
    if options.docs:
        tables.write(ROOT / "docs" / "compatibility.md", of_suites, of_plugins)
    return report([*of_suites, *of_plugins])


def report(checks: Sequence[Checked]) -> int:
    """Print what differs, and the end of the sessions that it differs in."""
    differences = [difference for check in checks for difference in check.differences()]
    if not differences:
        print(f"compat: {len(checks)} checks, {K} trials are {K} times the plain counts in each")
        return 0
    outputs = {
        (check.name, session): counts.output for check in checks for session, counts in check.sessions.items()
    }
    for name, session, _, _ in differences:
        print(f"\n--- {name}, {session}\n{outputs[name, session][-3000:]}")
    print(f"\ncompat: {len(differences)} sessions differ\n")
    print(tables.table(("check", "session", "expected", "counted"), differences))
    return 1


if __name__ == "__main__":
    sys.exit(main())
