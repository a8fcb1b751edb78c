"""`fakecri serve` and `fakecri proxy`: the fake on a socket, and faults in front of a real runtime.

Exit codes: 0 after SIGINT or SIGTERM, 2 for anything the user can mend (one line on stderr).
Imports that cost time wait until a command runs, so `--help` answers at once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakecri.server import GrpcUpstream
    from fakecri.target import CriTarget

_EXAMPLES = """\
examples:
  fakecri serve --listen unix:///tmp/cri.sock --script crash.yaml
  fakecri proxy --upstream unix:///run/containerd/containerd.sock --listen unix:///tmp/cri.sock \\
                --record calls.jsonl
"""


class CommandError(Exception):
    """Something the user can mend; the text is the whole message."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = _parser().parse_args(argv)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC's own chatter is not for our users
    try:
        asyncio.run(_serve(arguments) if arguments.command == "serve" else _proxy(arguments))
    except CommandError as error:
        print(f"fakecri: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fakecri",
        description="A programmable fake CRI runtime, and its fault rules in front of a real one.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve a fake runtime on a unix socket")
    proxy = commands.add_parser("proxy", help="record and disturb the calls to a real runtime")
    proxy.add_argument(
        "--upstream", required=True, metavar="unix:///PATH", help="socket of the real runtime"
    )
    serve.add_argument(
        "--image-root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="directory that the images are said to be in; a kubelet on this machine looks at the "
        "filesystem below it, so it must exist (default: %(default)s)",
    )
    for command in (serve, proxy):
        command.add_argument(
            "--listen", required=True, metavar="unix:///PATH", help="socket to serve the CRI on"
        )
        command.add_argument(
            "--script", type=Path, metavar="FILE", help="YAML file with behaviours and faults"
        )
        command.add_argument(
            "--record", type=Path, metavar="FILE", help="append every call to FILE, as JSON lines"
        )
    return parser


async def _serve(arguments: argparse.Namespace) -> None:
    from fakecri.fake import DEFAULT_IMAGES, FakeCRI
    from fakecri.node import FakeNode
    from fakecri.script import apply_script, load_script
    from fakecri.yaml_reader import ScriptError

    if not arguments.image_root.is_dir():
        raise CommandError(f"--image-root {arguments.image_root}: no such directory")
    try:
        script = load_script(arguments.script) if arguments.script else None
        listed = None if script is None else script.images
        # A kubelet on this machine stats the image directory and reads the log files.
        cri = FakeCRI(
            node=FakeNode(image_root=str(arguments.image_root)),
            images=DEFAULT_IMAGES if listed is None else listed,
            write_logs=True,
        )
        if script is not None:
            apply_script(script, cri)
    except ScriptError as error:
        raise CommandError(str(error)) from None
    await _listen(cri, arguments)


async def _proxy(arguments: argparse.Namespace) -> None:
    from fakecri.endpoint import EndpointError
    from fakecri.proxy import RecordingProxy
    from fakecri.script import apply_script, load_script
    from fakecri.server import GrpcUpstream
    from fakecri.yaml_reader import ScriptError

    try:
        async with GrpcUpstream(arguments.upstream) as upstream:
            proxy = RecordingProxy(upstream)
            if arguments.script:
                apply_script(load_script(arguments.script, faults_only=True), proxy)
            await _check_upstream(upstream)
            await _listen(proxy, arguments)
    except (EndpointError, ScriptError) as error:
        raise CommandError(str(error)) from None


async def _check_upstream(upstream: GrpcUpstream) -> None:
    """Somebody must listen there and speak CRI v1."""
    import grpc
    from criapi.v1 import api_pb2

    upstream.check(hint="start the runtime, or correct --upstream")
    try:
        await upstream.call("Version", api_pb2.VersionRequest(), timeout_s=5)
    except grpc.RpcError as error:
        raise CommandError(
            f"{upstream.endpoint} answers, but not as a CRI v1 runtime: "
            f"{error.code().name}: {error.details()}"
        ) from None


async def _listen(target: CriTarget, arguments: argparse.Namespace) -> None:
    """Serve until SIGINT or SIGTERM; the socket is removed at the end."""
    from fakecri.call_log import CallLog
    from fakecri.endpoint import EndpointError
    from fakecri.server import serve
    from simtime import RealClock

    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        if arguments.record:
            try:
                log = CallLog(target, arguments.record, RealClock())
            except OSError as error:
                raise CommandError(
                    f"cannot write --record {arguments.record}: {(error.strerror or '').lower()}"
                ) from None
            stack.callback(log.close)
            target = log
        try:
            server = await stack.enter_async_context(serve(target, arguments.listen))
        except EndpointError as error:
            raise CommandError(str(error)) from None
        print(f"fakecri {arguments.command}: listening on {server.endpoint}", flush=True)
        await ended.wait()
