"""The process that starts and ends commands for one test process, and outlives it just long enough.

Run as ``python -I -S keeper.py ROOT FD BASE NUMBER``. A small process of its own: forking it is cheap, it
has one thread, no Ctrl-C reaches it, and it can adopt every process that a target leaves without changing
whose child anything else of the session is.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys


def main() -> None:
    """Serve commands until the test process closes the connection or ends."""
    root, fd, base, number = sys.argv[1:5]
    sys.path.append(root)
    from pytest_crashlab.sandbox import cgroups, processes, removing, wire
    from pytest_crashlab.sandbox.supervise import ParentGone, Supervised

    sock = socket.socket(fileno=int(fd))
    sock.set_inheritable(False)
    parent = processes.parent_handle()
    owner = os.getppid()
    processes.adopt_orphans()
    cage = cgroups.Cage.make(cgroups.own_name(owner, number))
    if cage is not None:
        cage.enter()
    gc.disable()
    gc.freeze()
    try:
        facts = {
            "groups": [] if cage is None else cage.folders,
            "cage": {} if cage is None else {"memory": cage.limits_memory, "pids": cage.limits_processes},
        }
        wire.send(sock, facts)
        while is_asked(sock, parent) and (received := wire.receive(sock)) is not None:
            request, blobs = received
            if "do" in request:  # to a command that had ended already
                continue
            uses = cage if request["limits"]["cage"] else None
            report, kept = Supervised(request, blobs[0], sock, parent, uses).run()
            wire.send(sock, report, *kept)
    except (ParentGone, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        processes.end_all()
        if cage is not None:
            cage.remove()
        if os.getppid() != owner:
            removing.remove(base)


def is_asked(sock: socket.socket, parent: int | None) -> bool:
    """Wait for the next request; False when the test process has ended, whoever else holds the connection."""
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLHUP)
    if parent is not None:
        poll.register(parent, select.POLLIN)
    return all(fd != parent for fd, _ in poll.poll())


if __name__ == "__main__":
    main()
