"""`python -m conformance.harness.containerd [WORKDIR]`: a real containerd to try things on.

Prints the endpoint and directories, and runs until Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from conformance.harness.containerd import NodeError, start_containerd
from fakecri.endpoint import EndpointError


async def _run(workdir: Path) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with start_containerd(workdir, report=lambda line: print(line, file=sys.stderr)) as node:
        print(f"containerd {node.version}")
        print(f"endpoint     {node.endpoint}")
        print(f"pod logs     {node.log_root}")
        print(f"kubelet root {node.kubelet_root}", flush=True)
        await ended.wait()


def main() -> int:
    """Exit code 0 after a signal, 2 if the node cannot be started."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.harness.containerd",
        description="Start a real containerd in a container and keep it until Ctrl-C.",
    )
    parser.add_argument(
        "workdir",
        nargs="?",
        default="/tmp/refkubelet-containerd",
        type=Path,
        help="socket, logs and roots go here (default: %(default)s)",
    )
    try:
        asyncio.run(_run(parser.parse_args().workdir))
    except (NodeError, EndpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
