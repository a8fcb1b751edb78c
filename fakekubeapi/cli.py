"""`fakeapi serve`: the fake API server as a process of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simclock.distribution import add_version

if TYPE_CHECKING:
    import asyncio

DEFAULT_LISTEN: Final = "127.0.0.1:8001"


class UsageError(Exception):
    """A mistake in the command line or its surroundings; the text says what was wanted, what was
    there and what to do."""


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPV6]:PORT`; port 0 means any free one. Raises: UsageError
    for anything else.

    >>> parse_listen("127.0.0.1:8001")
    ('127.0.0.1', 8001)
    """
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"--listen: wanted HOST:PORT with a port from 0 to 65535, got {text!r}; "
            f"for example {DEFAULT_LISTEN}"
        )
    return host.strip("[]"), int(port)


def kubeconfig(url: str) -> str:
    """The text of a kubeconfig for clients of the server at `url`. It needs no credentials."""
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: fakeapi
  cluster:
    server: {url}
users:
- name: fakeapi
  user: {{}}
contexts:
- name: fakeapi
  context:
    cluster: fakeapi
    user: fakeapi
current-context: fakeapi
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fakeapi", description="A fake kube-apiserver.")
    add_version(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve until SIGTERM or SIGINT")
    serve.add_argument(
        "--listen",
        default=DEFAULT_LISTEN,
        metavar="HOST:PORT",
        help="plain HTTP, no authentication (default: %(default)s; port 0: a free one)",
    )
    serve.add_argument(
        "--kubeconfig-out",
        type=Path,
        metavar="FILE",
        help="write a kubeconfig for kubelets and kubectl here once the server listens",
    )
    serve.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="keep all objects in this directory, and go on with those that are there "
        "(default: in memory alone)",
    )
    serve.add_argument(
        "--clock-page",
        metavar="FILE",
        help="live in the time of this clock page, with the programs and fakes that name it, too "
        "(python -m timewarp --clock-page FILE); it is made if there is none",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; `argv` None: the arguments of the process. Returns the exit status: 0 after
    a signal, 2 for a mistake in the command line or its surroundings."""
    options = _parser().parse_args(argv)
    import asyncio  # here, not above: `fakeapi --help` shall not wait for it

    try:
        host, port = parse_listen(options.listen)
        with asyncio.Runner(loop_factory=_loop_factory(options.clock_page)) as runner:
            runner.run(_serve(host, port, options.kubeconfig_out, options.data))
    except UsageError as error:
        print(f"fakeapi: {error}", file=sys.stderr)
        return 2
    return 0


def _loop_factory(clock_page: str | None) -> Callable[[], asyncio.AbstractEventLoop]:
    """Loops in real time, or in the time of that clock page. Raises: UsageError."""
    import asyncio

    if clock_page is None:
        return asyncio.new_event_loop
    from timewarp import CannotWarp, TimePage, WarpedLoop
    from timewarp.architectures import this_architecture

    try:
        this_architecture()
        page = TimePage.open_or_create(clock_page)
    except CannotWarp as problem:
        raise UsageError(f"--clock-page: {problem}") from None
    return lambda: WarpedLoop(page)


async def _serve(host: str, port: int, kubeconfig_out: Path | None, data: Path | None) -> None:
    """Serve until SIGTERM or SIGINT; write the kubeconfig, if any, once the port is open."""
    # Here, not above: `fakeapi --help` shall not wait for the server's modules.
    import asyncio
    import signal

    from fakekubeapi.api import FakeApi
    from fakekubeapi.http import serve
    from fakekubeapi.storage.journal import DataError
    from fakekubeapi.storage.watch import BOOKMARK_EVERY_S
    from simclock import Ids, Rng

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        api = FakeApi(
            ids=Ids(Rng.from_system()),
            field_managers=True,
            data=data,
            bookmark_every_s=BOOKMARK_EVERY_S,
        )
    except DataError as error:
        raise UsageError(f"--data: {error}") from None
    try:
        server = await serve(api, host, port)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot listen on {host}:{port}: {reason}\n"
            "  choose another address:  fakeapi serve --listen 127.0.0.1:0"
        ) from None
    async with server:
        if kubeconfig_out is not None:
            _write_kubeconfig(kubeconfig_out, server.url)
        print(f"fakeapi: serving on {server.url}", flush=True)
        await stop.wait()
    api.close()


def _write_kubeconfig(path: Path, url: str) -> None:
    try:
        path.write_text(kubeconfig(url), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--kubeconfig-out: cannot write {path}: {error.strerror}; "
            "name a file in a directory that exists and is writable"
        ) from None


if __name__ == "__main__":
    raise SystemExit(main())
