"""Draw images/demo.svg: the end of a gated run of the bundled example, as a terminal shows it.

``python docs/draw_demo.py`` really runs it. The picture names no font or address outside of itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "annealing"
COMMAND = "pytest --trials=5 --baseline=baseline.crashrun"
WIDTH = 96

# rich's own template without the web font that it loads.
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg"
 xml:space="preserve">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run() -> str:
    """What the run with the hasty cooling schedule prints, colours included."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CRASHLAB_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *COMMAND.split()[1:], "--crashlab-seed=7", "--color=yes"],
        cwd=EXAMPLE,
        env={**kept, "COOLING": "fast", "COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 1:
        raise SystemExit(f"The run ended with {done.returncode} and not with 1:\n{done.stdout}")
    return done.stdout


def summary(lines: list[str]) -> list[str]:
    """The lines from the summary on; of the cases that moved the first three."""
    first = next(i for i, line in enumerate(lines) if " crashlab " in line and "====" in line)
    moved = next(i for i, line in enumerate(lines) if line.strip() == "Cases that moved")
    after = next(i for i, line in enumerate(lines) if line.strip().startswith("Interleaved"))
    return [*lines[first : moved + 7], "    ...", *lines[after:]]


def main() -> None:
    """Run, cut to the summary, draw."""
    console = Console(record=True, width=WIDTH, file=Path(os.devnull).open("w"), force_terminal=True)  # noqa: SIM115
    console.print(Text(f"$ COOLING=fast {COMMAND}", "bold"))
    for line in summary(run().splitlines()):
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="pytest-crashlab", code_format=SVG, unique_id="crashlab")
    (HERE / "images" / "demo.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
