"""The gate at work: the example as it is, then with a cooling schedule that is too hasty.

Exit code 0 when the gate passes the first and fails the second, as it should; else 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pytest_crashlab.store import Store

HERE = Path(__file__).resolve().parent
# The seed makes both runs come out the same on every machine. Leave it out to see fresh draws.
ARGUMENTS = ["--trials=5", "--baseline=baseline.crashrun", "--crashlab-seed=7"]
EXPECTED = {"slow": ("No change", 0), "fast": ("Regressed", 1)}


def gate(cooling: str) -> tuple[str, int]:
    """Run the example with one cooling schedule; the verdict's word and pytest's exit code."""
    print(f"\n$ COOLING={cooling} pytest {' '.join(ARGUMENTS)}", flush=True)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CRASHLAB_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *ARGUMENTS], cwd=HERE, env={**kept, "COOLING": cooling}, check=False
    )
    return verdict() if done.returncode in (0, 1, 10) else "no verdict was made", done.returncode


def verdict() -> str:
    """The word that the newest run's gate was decided by."""
    newest = Store.open(HERE / ".crashlab").manifests()[0]
    return str((newest.gate or {}).get("word"))


def main() -> int:
    """Run both and say what they show."""
    print("24 rounds of a courier, five tries each, beside a committed run of the same planner.")
    results = {cooling: gate(cooling) for cooling in EXPECTED}
    print("\nThe demo in short")
    for cooling, (word, code) in results.items():
        print(f"  cooling {cooling}: {word}, exit code {code}")
    if results == EXPECTED:
        print("As expected: the exit code 1 of the second run is what stops a CI job.")
        return 0
    print(f"Not as expected: {EXPECTED}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
