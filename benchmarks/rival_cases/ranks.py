"""Runs a program of pfl in several processes, as its guide to distributed simulation has it:

    ranks.py PROCESSES COMMAND ...

What the first process prints is printed, and the other processes are silent.
"""

import os
import socket
import subprocess
import sys


def find_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main() -> int:
    count, command = int(sys.argv[1]), sys.argv[2:]
    addresses = ",".join(f"127.0.0.1:{port}" for port in find_ports(count))
    started = []
    for rank in range(count):
        environment = os.environ | {
            "PFL_WORKER_RANK": str(rank),
            "PFL_WORKER_ADDRESSES": addresses,
        }
        silent = subprocess.DEVNULL if rank else None
        started.append(
            subprocess.Popen(command, env=environment, stdout=silent, stderr=silent),
        )
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(main())
