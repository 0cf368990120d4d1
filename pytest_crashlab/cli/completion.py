"""``crashlab completion SHELL``: what makes a shell complete verbs, options and run ids."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from pytest_crashlab.cli import output
from pytest_crashlab.errors import CrashlabError, UsageError

if TYPE_CHECKING:
    from types import ModuleType

_DESCRIPTION = """\
Print what a shell has to read once to complete verbs, options, run ids and names of baselines.
Needs argcomplete: pip install 'pytest-crashlab[completion]'.

example:
  eval "$(crashlab completion bash)"                                     in ~/.bashrc
  eval "$(crashlab completion zsh)"                                      in ~/.zshrc
  crashlab completion fish > ~/.config/fish/completions/crashlab.fish
"""
SHELLS = ("bash", "zsh", "fish")
# What argcomplete's shell code sets when it asks for words.
_ASKED = "_ARGCOMPLETE"
_RUNS = frozenset({"reference", "baseline", "candidate"})


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "completion",
        help="complete in bash, zsh or fish",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the shell's code."""
    code = _argcomplete().shellcode(["crashlab"], shell=args.shell)
    output.write(f"{code.rstrip()}\n")
    return 0


def answer_a_shell(parser: argparse.ArgumentParser) -> None:
    """Where a shell asks for words, give them and end the process; else do nothing."""
    if _ASKED in os.environ:
        _add_completers(parser)
        _argcomplete().autocomplete(parser)


def _argcomplete() -> ModuleType:
    try:
        import argcomplete
    except ImportError:
        raise UsageError(
            "Completion needs argcomplete; install it with 'pip install pytest-crashlab[completion]'."
        ) from None
    module: ModuleType = argcomplete
    return module


def _add_completers(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to its arguments
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for verb in action.choices.values():
                _add_completers(verb)
        elif action.dest in _RUNS:
            action.completer = _runs  # type: ignore[attr-defined]


def _runs(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Run ids, newest first, and names of baselines; nothing where there is no store."""
    from pytest_crashlab.cli import lookup

    try:
        store = lookup.open_store(parsed_args)
    except CrashlabError:
        return []
    return [lookup.LATEST, *store.refs.all(), *store.run_ids()]
