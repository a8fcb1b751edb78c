"""`fakecri device-plugin`: a device plugin for a kubelet on this machine, until SIGTERM.

Every call of the kubelet is a JSON line on stdout; lines on stdin change what the plugin does.
Exit codes: 0 after SIGINT or SIGTERM, 2 for anything the user can mend (one line on stderr).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fakecri.deviceplugin.plugin import FakeDevicePlugin, PluginCall, PluginDevice
from fakecri.deviceplugin.serving import ServedPlugins
from fakecri.errors import CriError
from fakecri.recording.plain import plain
from simclock.distribution import add_version

_COMMANDS: Final = """\
lines on stdin:
  unhealthy ID          the device's health is Unhealthy from now on
  healthy ID            ... and Healthy again
  fail METHOD TEXT      calls of the method fail with that text
  hang METHOD           calls of the method are never answered
  work METHOD           undo fail and hang
  die                   the plugin's socket and streams are gone
  return                it listens and registers again

example:
  fakecri device-plugin --resource vendor.example/widget --device w1 --device w2@0
"""


class _Wrong(ValueError):
    """A line or an option that cannot be followed; the text says why."""


def main(argv: Sequence[str]) -> int:
    """Run the command line after `fakecri device-plugin`; returns the exit code."""
    arguments = _parser().parse_args(argv)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        plugin = FakeDevicePlugin(arguments.resource, map(read_device, arguments.device))
        if not arguments.directory.is_dir():
            raise _Wrong(
                f"--directory {arguments.directory}: no such directory; "
                "wanted the device-plugins directory of a kubelet"
            )
        plugin.pre_start_required = arguments.pre_start
        plugin.on_call = _print
        asyncio.run(_run(plugin, arguments.directory))
    except _Wrong as error:
        print(f"fakecri: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fakecri device-plugin",
        description="A device plugin without devices, for a real kubelet.",
        epilog=_COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    parser.add_argument("--resource", required=True, metavar="DOMAIN/NAME")
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="ID[@NODE,...]",
        help="a device, and the NUMA nodes it is near to; may be repeated",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("/var/lib/kubelet/device-plugins"),
        metavar="DIR",
        help="where the kubelet's kubelet.sock is (default: %(default)s)",
    )
    parser.add_argument(
        "--pre-start", action="store_true", help="ask for PreStartContainer before every start"
    )
    return parser


def read_device(text: str) -> PluginDevice:
    """A device as the command line names it. Raises ValueError.

    >>> read_device("w2@0,1")
    PluginDevice(id='w2', health='Healthy', nodes=(0, 1))
    """
    name, _, nodes = text.partition("@")
    try:
        return PluginDevice(name, nodes=tuple(int(node) for node in nodes.split(",") if node))
    except ValueError:
        raise _Wrong(f"--device {text}: wanted numbers of NUMA nodes behind the @") from None


def _print(call: PluginCall) -> None:
    print(json.dumps({"method": call.method, "request": plain(call.request)}), flush=True)


async def _run(plugin: FakeDevicePlugin, directory: Path) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    plugins = ServedPlugins(directory)
    try:
        await _start(plugins, plugin)
        follower = asyncio.create_task(_follow(plugins, plugin))
        await over.wait()
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)
    finally:
        await plugins.close()


async def _start(plugins: ServedPlugins, plugin: FakeDevicePlugin) -> None:
    try:
        await plugins.start(plugin)
    except CriError as error:
        print(f"fakecri: the kubelet does not take it yet: {error.details()}", file=sys.stderr)


async def _follow(plugins: ServedPlugins, plugin: FakeDevicePlugin) -> None:
    """Do what the lines of stdin say, until stdin ends."""
    reader = asyncio.StreamReader()
    if not _has_to_be_waited_for(sys.stdin.fileno()):
        reader.feed_data(sys.stdin.buffer.read())
        reader.feed_eof()
        await _obey_lines(reader, plugins, plugin)
        return
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    with contextlib.closing(pipe):
        await _obey_lines(reader, plugins, plugin)


def _has_to_be_waited_for(stdin: int) -> bool:
    """Whether reading may block. It does not for a file, nor for /dev/null, which a script gives to
    programs in the background."""
    with select.epoll() as epoll:
        try:
            epoll.register(stdin)
        except PermissionError:
            return False
    return True


async def _obey_lines(
    reader: asyncio.StreamReader, plugins: ServedPlugins, plugin: FakeDevicePlugin
) -> None:
    while data := await reader.readline():
        line = data.decode(errors="replace")
        try:
            await _obey(line.split(maxsplit=2), plugins, plugin)
        except ValueError as error:
            print(f"fakecri: error: {line.strip()}: {error}", file=sys.stderr)


async def _obey(words: list[str], plugins: ServedPlugins, plugin: FakeDevicePlugin) -> None:
    match words:
        case ["unhealthy" | "healthy" as health, device]:
            plugin.set_health(device, health.capitalize())
        case ["fail", method, text]:
            plugin.fails(method, text)
        case ["hang", method]:
            plugin.hangs(method)
        case ["work", method]:
            plugin.works(method)
        case ["die"]:
            await plugins.stop(plugin)
        case ["return"]:
            await _start(plugins, plugin)
        case []:
            return
        case _:
            raise _Wrong("no such command; fakecri device-plugin --help lists them")
