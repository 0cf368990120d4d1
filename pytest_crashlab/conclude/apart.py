"""The conclusion in a process of its own.

Tables and statistics need libraries of some 70 MB. A session that has not loaded them leaves the
end to a process that has, and stays as small as its tests.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crashlab.errors import CrashlabError

if TYPE_CHECKING:
    from pytest_crashlab.conclude.brief import Brief, Conclusion

_HEAVY = ("polars", "scipy.special")
# -P and an appended path: no module of the tests' folder takes the place of a library's.
_START = (
    "import gc, sys; gc.disable(); sys.path.append(sys.argv.pop()); "
    "from pytest_crashlab.conclude.apart import main; main()"
)


def is_lighter() -> bool:
    """Whether a process of its own would spare this one the libraries."""
    if os.name == "nt" or not sys.executable:
        return False  # Windows does not let a lock pass from one process to another
    return not all(name in sys.modules for name in _HEAVY)


def conclude_apart(brief: Brief, lock: int) -> Conclusion | None:
    """Seal and conclude the run of ``brief``; ``lock`` is the open file of the run's lock.

    The other process holds it as well, so that nobody recovers a run that is being sealed although
    this process was killed.

    None where no such process can be had, so that it remains to be done here. Raises what
    ``conclude`` raises.
    """
    command = [sys.executable, "-P", "-c", _START, str(Path(__file__).parents[2])]
    try:
        done = subprocess.run(
            command,
            input=pickle.dumps(brief),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            pass_fds=(lock,),
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},  # no matrices here; its threads cost a start
            process_group=0,  # Ctrl-C is for the session to handle
        )
    except OSError:
        return None
    if done.returncode != 0:
        return None
    result = pickle.loads(done.stdout)  # noqa: S301 - what the process above wrote
    if isinstance(result, Exception):
        raise result
    conclusion: Conclusion = result
    return conclusion


def main() -> None:
    """The process's own side: a brief on standard input, its conclusion on standard output."""
    answer, sys.stdout = sys.stdout.buffer, sys.stderr  # nothing that is printed gets between
    brief: Brief = pickle.load(sys.stdin.buffer)  # noqa: S301 - what the process's parent wrote
    answer.write(pickle.dumps(_answer(brief)))
    answer.flush()
    os._exit(0)  # the libraries' own clean-up changes nothing and takes a while


def _answer(brief: Brief) -> Conclusion | Exception:
    from pytest_crashlab.stats.loading import load_scipy

    load_scipy()
    from pytest_crashlab.conclude.conclude import conclude
    from pytest_crashlab.store.runs import Store

    # Modules make no garbage worth looking for while they load (a tenth of the time it takes).
    gc.freeze()
    gc.enable()
    try:
        store = Store.open(brief.store)
        store.seal_held(brief.run_id, brief.status)
        return conclude(store, brief, None)
    except (CrashlabError, OSError) as error:
        return error
