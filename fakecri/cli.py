"""`fakecri serve` and `fakecri proxy`: the fake on a socket, and faults in front of a real runtime.
`fakecri ctl` programs either while it runs (see `fakecri.control.ctl`), `fakecri learn` makes a
script of what they recorded, `fakecri check` looks at scripts. `fakecri cgroupfs` is a fake
/sys/fs/cgroup, `fakecri device-plugin` a device plugin for a kubelet.

Exit codes: 0 after SIGINT or SIGTERM, 2 for anything the user can mend (one line on stderr).
Imports that cost time wait until a command runs, so `--help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fakecri.serving.cli_arguments import parser

if TYPE_CHECKING:
    import asyncio

    from fakecri.cri.services import CriTarget
    from fakecri.fake import FakeCRI
    from fakecri.recording.call_log import CallLog
    from fakecri.rules.instrument import Instrumented
    from fakecri.server import GrpcUpstream


class CommandError(Exception):
    """Something the user can mend; the text is the whole message."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["ctl"]:
        from fakecri.control import ctl

        return ctl.main(words[1:])
    if words[:1] == ["cgroupfs"]:
        from fakecri.cgroupfs.outside import cli as cgroupfs

        return cgroupfs.main(words[1:])
    if words[:1] == ["device-plugin"]:
        from fakecri.deviceplugin import cli as deviceplugin

        return deviceplugin.main(words[1:])
    arguments = parser().parse_args(words)
    if arguments.command == "learn":
        return _learn(arguments.record)
    if arguments.command == "check":
        from fakecri.serving import check

        return check.main(arguments)
    import asyncio

    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC's own chatter is not for our users
    try:
        with asyncio.Runner(loop_factory=_loop_factory(arguments)) as runner:
            runner.run(_serve(arguments) if arguments.command == "serve" else _proxy(arguments))
    except CommandError as error:
        print(f"fakecri: error: {error}", file=sys.stderr)
        return 2
    return 0


def _loop_factory(arguments: argparse.Namespace) -> Callable[[], asyncio.AbstractEventLoop]:
    if getattr(arguments, "clock", "real") == "manual":
        from simclock import ManualLoop

        if getattr(arguments, "clock_page", None):
            raise CommandError("--clock manual and --clock-page: one time only, leave one out")
        return ManualLoop
    import asyncio

    if page := getattr(arguments, "clock_page", None):
        return _warped(page)
    return asyncio.new_event_loop


def _warped(page: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """Loops in the time of that clock page. Raises: CommandError."""
    from simclock.timewarp import CannotWarp, loops_at

    try:
        return loops_at(page)
    except CannotWarp as problem:
        raise CommandError(f"--clock-page: {problem}") from None


def _learn(path: Path) -> int:
    import yaml

    from fakecri.recording.learning import learned_script
    from fakecri.recording.recorded import RecordError, read_record

    try:
        script = learned_script(read_record(path))
    except RecordError as error:
        print(f"fakecri: error: {error}", file=sys.stderr)
        return 2
    print(yaml.safe_dump(script, sort_keys=False, allow_unicode=True), end="")
    return 0


async def _serve(arguments: argparse.Namespace) -> None:
    from fakecri.fake import FakeCRI
    from fakecri.serving.fake_arguments import made_of
    from kubeobjects.strict.errors import ScriptError

    try:
        node, options = made_of(arguments)
        if not Path(node.image_root).is_dir():
            raise CommandError(f"--image-root {node.image_root}: no such directory")
        cri = FakeCRI(node=node, **options)
    except ScriptError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:  # of the switches
        raise CommandError(str(error).replace("pod_network", "--pod-network")) from None
    try:
        async with _cgroups_at(cri, arguments.cgroups):
            await _listen(cri, arguments)
    finally:
        await cri.stop_streaming()  # a call log in front of the fake hides it from the server


@asynccontextmanager
async def _cgroups_at(cri: FakeCRI, directory: Path | None) -> AsyncIterator[None]:
    """The cgroups of its node are files for other processes, if they are wanted."""
    if directory is None:
        yield
        return
    from fakecri.cgroupfs.outside import OutsideError, mount

    try:
        async with mount(cri.node.cgroups, directory) as mounted:
            print(f"fakecri serve: cgroups at {mounted.directory}", flush=True)
            yield
    except OutsideError as error:
        raise CommandError(f"--cgroups: {error}") from None


async def _proxy(arguments: argparse.Namespace) -> None:
    from fakecri.cri.endpoint import EndpointError
    from fakecri.proxy import RecordingProxy
    from fakecri.scripts.script import apply_script, load_script
    from fakecri.server import GrpcUpstream
    from kubeobjects.strict.errors import ScriptError

    try:
        async with GrpcUpstream(arguments.upstream) as upstream:
            proxy = RecordingProxy(upstream, call_limit=arguments.call_limit or 100_000)
            if arguments.script:
                apply_script(load_script(arguments.script, faults_only=True), proxy)
            await _check_upstream(upstream)
            await _listen(proxy, arguments)
    except (EndpointError, ScriptError) as error:
        raise CommandError(str(error)) from None


async def _check_upstream(upstream: GrpcUpstream) -> None:
    """Check that a runtime listens there and speaks CRI v1. Raises CommandError."""
    import grpc
    from kubecri.v1 import api_pb2

    upstream.check(hint="start the runtime, or correct --upstream")
    try:
        await upstream.call("Version", api_pb2.VersionRequest(), timeout_s=5)
    except grpc.RpcError as error:
        raise CommandError(
            f"{upstream.endpoint} answers, but not as a CRI v1 runtime: "
            f"{error.code().name}: {error.details()}"
        ) from None


async def _listen(instrumented: Instrumented, arguments: argparse.Namespace) -> None:
    """Serve until SIGINT or SIGTERM; the sockets are removed at the end."""
    import asyncio

    from fakecri.control.api import serve_control
    from fakecri.cri.endpoint import EndpointError
    from fakecri.server import serve
    from simclock import ManualLoop

    _check_sockets(arguments)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        target: CriTarget = instrumented
        if arguments.record:
            target = log = _call_log(instrumented, arguments.record)
            stack.callback(log.close)
        try:
            server = await stack.enter_async_context(serve(target, arguments.listen))
            lines = [f"listening on {server.endpoint}"]
            if arguments.control:  # the last: that it answers means that all is served
                manual = loop if isinstance(loop, ManualLoop) else None
                serving = serve_control(instrumented, arguments.control, manual)
                lines.append(f"control on {await stack.enter_async_context(serving)}")
        except EndpointError as error:
            raise CommandError(str(error)) from None
        if arguments.listen.startswith("tcp://"):
            warning = "every process that reaches this port can use the fake"
            print(f"fakecri {arguments.command}: warning: {warning}", file=sys.stderr)
        for line in lines:
            print(f"fakecri {arguments.command}: {line}", flush=True)
        stack.enter_context(_ready_file(arguments.ready_file, server.endpoint))
        await ended.wait()
    for rule in instrumented.unused_rules():
        print(f"fakecri {arguments.command}: never hit: {rule.what}", file=sys.stderr)


def _check_sockets(arguments: argparse.Namespace) -> None:
    """Raise CommandError for sockets that cannot go together, or are too few."""
    from fakecri.cri.endpoint import EndpointError, require_two_sockets

    if getattr(arguments, "clock", "real") == "manual" and not arguments.control:
        raise CommandError("--clock manual: time would stand still for ever; give --control too")
    try:
        require_two_sockets(arguments.listen, arguments.control)
    except EndpointError as error:
        raise CommandError(str(error)) from None


@contextmanager
def _ready_file(file: Path | None, endpoint: str) -> Iterator[None]:
    """A file that is there, whole, as long as calls are answered."""
    if file is None:
        yield
        return
    half = file.parent / f".{file.name}.{os.getpid()}"
    try:
        half.write_text(f"{endpoint}\n")
        half.replace(file)
    except OSError as error:
        with suppress(OSError):
            half.unlink()
        raise CommandError(
            f"cannot write --ready-file {file}: {(error.strerror or '').lower()}"
        ) from None
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _call_log(instrumented: Instrumented, file: Path) -> CallLog:
    from fakecri.recording.call_log import CallLog

    try:
        t0_s = instrumented.recorder.t0_s
        return CallLog(instrumented, file, instrumented.clock, t0_s=t0_s)
    except OSError as error:
        raise CommandError(
            f"cannot write --record {file}: {(error.strerror or '').lower()}"
        ) from None
