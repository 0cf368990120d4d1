"""``crashlab schema``: the JSON Schemas of what the other verbs print with ``--json``."""

from __future__ import annotations

import argparse
import json
from importlib.resources import files

from pytest_crashlab.cli import output
from pytest_crashlab.errors import UsageError

_DESCRIPTION = """\
Without NAME: the JSON Schemas of what --json prints, with their versions and the commands that print it.
With NAME: that schema (draft 2020-12). NAME is what stands in the output as "schema".

example:
  crashlab schema
  crashlab schema session > session.schema.json
"""
_PREFIX = "crashlab."


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "schema",
        help="list or print the JSON Schemas of --json",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help='as "session" or "crashlab.session"')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list, or one schema."""
    known = schemas()
    if args.name is None:
        wide = max(map(len, known))
        for name, text in known.items():
            schema = json.loads(text)
            version = schema["properties"]["version"]["const"]
            output.line(f"{name:<{wide}}  version {version}")
            output.line(f"  {schema['description']}")
        return 0
    name = args.name.removeprefix(_PREFIX)
    if name not in known:
        raise UsageError(f"There is no schema {args.name}; there are {', '.join(known)}.")
    output.write(known[name])
    return 0


def schemas() -> dict[str, str]:
    """The text of every schema by its name, of each the newest version."""
    found: dict[str, tuple[int, str]] = {}
    for file in files("pytest_crashlab.report").joinpath("schemas").iterdir():
        name, _, rest = file.name.partition(".v")
        version = rest.removesuffix(".json")
        if version.isdecimal() and int(version) > found.get(name, (0, ""))[0]:
            found[name] = (int(version), file.read_text("utf-8"))
    return {name: text for name, (_, text) in sorted(found.items())}
