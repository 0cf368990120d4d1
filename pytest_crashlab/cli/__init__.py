"""The ``crashlab`` command: one module per verb, each with ``add_parser`` and ``run``.

Exit codes: 0 done; what ``gate`` says (1 it fails, 10 no verdict); 1 also for a promotion that another
session won; 4 for arguments, runs or stores that cannot be used, with one sentence on stderr.
"""

from __future__ import annotations

import argparse
import importlib
import keyword
import os
from typing import TYPE_CHECKING, NoReturn

from pytest_crashlab.errors import CrashlabError, PromotionConflict, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = (
    *("runs", "view", "diff", "inspect", "history", "outcomes"),
    *("gate", "plan", "baseline"),
    *("amend", "import", "recover", "cancel", "delete", "doctor", "schema", "completion"),
)
USAGE, CONFLICT, INTERRUPTED = 4, 1, 130

_DESCRIPTION = """\
Runs of pytest --trials, their verdicts and their baselines.

example:
  crashlab runs                          the stored runs, newest first
  crashlab gate latest --baseline main   judge the newest run; the exit code says how
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with ``argv`` (default: the process's) and return its exit code."""
    try:
        parser = _parser()
        if "_ARGCOMPLETE" in os.environ:
            from pytest_crashlab.cli.completion import answer_a_shell

            answer_a_shell(parser)
        args = parser.parse_args(argv)
        verb: int = args.run(args)
        return verb
    except CrashlabError as error:
        from pytest_crashlab.cli.output import complain

        complain(str(error))
        return CONFLICT if isinstance(error, PromotionConflict) else USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:  # argparse ends --help and --version this way
        return end.code if isinstance(end.code, int) else 0


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one sentence, as those of everything else here."""

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` instead of printing the usage and exiting with 2."""
        raise UsageError(f"{message}; '{self.prog} --help' shows how it is used.")


def _parser() -> Parser:
    from pytest_crashlab import __version__

    parser = Parser(
        prog="crashlab", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"pytest-crashlab {__version__}")
    add_store(parser, default=None)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    for verb in VERBS:
        module = f"{verb}_" if keyword.iskeyword(verb) else verb
        importlib.import_module(f"pytest_crashlab.cli.{module}").add_parser(verbs)
    return parser


def add_store(parser: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS) -> None:
    """Add ``--store``, which may stand before or after the verb."""
    parser.add_argument(
        "--store",
        metavar="PATH",
        default=default,
        help="the store (default: CRASHLAB_STORE, else the nearest .crashlab here or above)",
    )
