"""The command line: `refkubelet run`. Heavy imports wait until something really starts.

Every mistake of the user (flag, file, socket, port) is told on stderr without a traceback, and the
exit code is 2. SIGTERM and SIGINT stop the kubelet and leave all containers running.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

from simclock.distribution import add_version, not_installed

USAGE_ERROR: Final = 2
ROOT_DIR: Final = "/var/lib/kubelet"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the process's exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return USAGE_ERROR
    _log_to_stderr(options.v)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC's own chatter is not for our users
    import asyncio  # late, as what follows: --help and mistakes in flags are answered at once

    try:
        from refkubelet.daemon import USER_ERRORS, run
    except ModuleNotFoundError as error:
        print(f"refkubelet: {not_installed(error, 'kubelet')}", file=sys.stderr)
        return USAGE_ERROR
    try:
        return asyncio.run(run(options))
    except USER_ERRORS as e:
        print(f"refkubelet: {e}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="refkubelet", description="A kubelet you can read: runs pods on a CRI runtime."
    )
    add_version(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser("run", help="run the kubelet until SIGTERM")
    run.add_argument("--config", metavar="FILE", help="KubeletConfiguration v1beta1 (YAML or JSON)")
    run.add_argument(
        "--container-runtime-endpoint",
        metavar="unix:///PATH",
        help="socket of the CRI runtime; wins over the file's containerRuntimeEndpoint",
    )
    run.add_argument(
        "--image-service-endpoint",
        metavar="unix:///PATH",
        help="socket of the CRI image service; the runtime's if not given",
    )
    run.add_argument(
        "--kubeconfig", metavar="FILE", help="how to reach the API server; none = standalone"
    )
    run.add_argument("--hostname-override", metavar="NAME", default="", help="name of this node")
    run.add_argument(
        "--node-ip", metavar="IP", default="", help="address of this node, for hostNetwork pods"
    )
    run.add_argument(
        "--root-dir", metavar="DIR", default=ROOT_DIR, help=f"state of pods (default {ROOT_DIR})"
    )
    run.add_argument(
        "--insecure-server",
        action="store_true",
        help="let the main port, which does not authenticate yet, listen beyond loopback addresses",
    )
    run.add_argument("--seed", type=int, help="seed of all random choices, to repeat a run")
    run.add_argument("-v", action="count", default=0, help="tell more; -vv tells everything")
    return parser


def _log_to_stderr(verbosity: int) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname).1s %(name)s: %(message)s"
    )
    logging.getLogger("refkubelet").setLevel(level)
