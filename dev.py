"""Everything a contributor runs, from a fresh clone: ``python3 dev.py demo``, ``python3 dev.py test`` ...

The environment is made in ``.venv`` by the first command that needs it and used again as long as
``pyproject.toml`` is the same. Standard library only, and no syntax later than Python 3.6, so that
an old interpreter reaches the sentence that says so.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  the interpreter may be any
    from shutil import which
    from subprocess import DEVNULL, call

    names = [f"python3.{minor}" for minor in (14, 13, 12, 11)]
    later = [name for name in names if which(name) and call([name, "-c", ""], stderr=DEVNULL) == 0]
    sys.exit(
        f"dev.py: pytest-crashlab needs Python 3.11 or later and this is {sys.version.split()[0]} "
        f"({sys.executable}). Run `{later[0] if later else 'python3.11'} dev.py {' '.join(sys.argv[1:])}`"
        + (" instead." if later else " once a later Python is installed.")
    )

import argparse
import hashlib
import json
import os
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
STAMP = ENVIRONMENT / "installed-by-dev.json"

# command: (what it does, extras of pyproject.toml it needs, command line in the environment)
COMMANDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "demo": (
        "gate the bundled example on its committed baseline, unchanged and then made worse",
        (),
        ("examples/annealing/demo.py",),
    ),
    "test": (
        "run the tests on all cores; what follows goes to pytest (-n0: in one process)",
        ("test",),
        ("-m", "pytest", "-n", "logical", "--dist", "worksteal"),
    ),
    "lint": ("ruff: rules and format", ("lint",), ("-m", "ruff", "check", ".")),
    "format": ("let ruff format the sources", ("lint",), ("-m", "ruff", "format", ".")),
    "types": ("mypy --strict", ("lint", "test"), ("-m", "mypy")),
    "layers": (
        "hold the layers of the package",
        ("lint",),
        ("-c", "from importlinter.cli import lint_imports_command as c; c()"),
    ),
    "docs": (
        "build the documentation into site/",
        ("docs",),
        ("-m", "mkdocs", "build", "--strict"),
    ),
    "compat": (
        "hold published suites and other plugins to three trials; --only NAME, --peers, --docs",
        ("dev",),
        ("-m", "tox", "-e", "compat", "--"),
    ),
    "bench": (
        "measure what trials cost beside pytest-repeat: trials, collection, finish, growth, workers ...",
        ("bench", "providers-test"),
        ("benchmarks/overhead.py",),
    ),
    "tox": ("run a tox environment, for example `dev.py tox -e lowest`", ("dev",), ("-m", "tox")),
}


class SetupError(Exception):
    """The environment cannot be made; the message says why and what to do."""


def environment_python() -> Path:
    """The interpreter of ``.venv``, whether or not it exists."""
    return ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_usable(python: Path) -> bool:
    """Whether an interpreter is there, starts and is new enough."""
    question = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    try:
        answer = subprocess.run([str(python), "-c", question], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def installed_extras(digest: str) -> set[str] | None:
    """The extras that are installed for this pyproject.toml; None where nothing is."""
    try:
        stamp = json.loads(STAMP.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return set(stamp["extras"]) if stamp.get("digest") == digest else None


def prepare(extras: tuple[str, ...]) -> Path:
    """Make or complete ``.venv`` so that the package is in it with ``extras``; its interpreter."""
    python = environment_python()
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    usable = is_usable(python)
    present = installed_extras(digest) if usable else None
    if present is not None and present.issuperset(extras):
        return python
    if not usable:
        say(f"making {ENVIRONMENT.name} with Python {sys.version.split()[0]}")
        try:
            venv.EnvBuilder(with_pip=True, clear=ENVIRONMENT.exists(), symlinks=os.name != "nt").create(
                ENVIRONMENT
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise SetupError(
                f"Cannot make a virtual environment in {ENVIRONMENT} ({error}): install Python's venv "
                "module, on Debian the package python3-venv, and try again."
            ) from error
    wanted = sorted({*extras, *(present or ())})
    target = f"{ROOT}[{','.join(wanted)}]" if wanted else str(ROOT)
    say(f"installing the package{' with ' + ', '.join(wanted) if wanted else ''} (once, about a minute)")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    if subprocess.run([*pip, "--editable", target], cwd=ROOT, check=False).returncode != 0:
        raise SetupError("The installation failed; pip's own words are above. Nothing was run.")
    STAMP.write_text(json.dumps({"digest": digest, "extras": wanted}), "utf-8")
    return python


def say(text: str) -> None:
    """One line about what happens now, ahead of what the command prints."""
    print(f"dev.py: {text}", file=sys.stderr, flush=True)


def run(name: str, arguments: list[str]) -> int:
    """Run one command in the environment; its exit code."""
    _, extras, command = COMMANDS[name]
    python = prepare(extras)
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # an advertisement among the warnings
    code = subprocess.run([str(python), *command, *arguments], cwd=ROOT, check=False).returncode
    if name == "lint" and code == 0 and not arguments:
        code = subprocess.run(
            [str(python), "-m", "ruff", "format", "--check", "."], cwd=ROOT, check=False
        ).returncode
    return code


def set_up(extras: list[str]) -> int:
    """Install ``extras`` of pyproject.toml beside what is there: tests that need them are not skipped."""
    prepare(tuple(extras))
    return 0


def main() -> int:
    """Read the command line and run."""
    lines = [f"  {name:7} {what}" for name, (what, _, _) in COMMANDS.items()]
    lines.append(f"  {'setup':7} install extras of pyproject.toml that tests use: providers-test")
    lines.append(f"  {'ci':7} all that has to hold before a change lands (.ci/run)")
    parser = argparse.ArgumentParser(
        prog="dev.py",
        usage="python3 dev.py COMMAND [arguments of the command]",
        epilog="commands:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=[*COMMANDS, "setup", "ci"], help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.command == "ci":
            return subprocess.run(["bash", str(ROOT / ".ci" / "run")], check=False).returncode
        if options.command == "setup":
            return set_up(options.arguments)
        return run(options.command, options.arguments)
    except SetupError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
