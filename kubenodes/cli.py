"""The command line: `kubenodes` runs nodes at an API server until SIGTERM or SIGINT.

Every mistake of the user (flag, file, API server) is told on stderr without a traceback, and the
exit code is 2. What must never happen: something of the nodes is left at the API server after a
SIGTERM, unless `--keep` says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simclock.distribution import add_version, not_installed
from simclock.start_up import many_imports

if TYPE_CHECKING:
    import asyncio

    from kubenodes.settings import NodeSettings
    from kubenodes.template import Template

USAGE_ERROR: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the process's exit code."""
    options = _parser().parse_args(arguments)
    try:
        with many_imports():
            import asyncio

            from kubenodes.node import NodeError
            from kubeobjects.strict.errors import ScriptError
            from refkubelet.api.client import ApiError
            from refkubelet.config import ConfigError
            from refkubelet.node.labels import NodeLabelError
    except ModuleNotFoundError as error:
        print(f"kubenodes: {not_installed(error, 'nodes')}", file=sys.stderr)
        return USAGE_ERROR
    try:
        with asyncio.Runner(loop_factory=_loop_factory(options.clock_page)) as runner:
            return runner.run(_run(options))
    except (ApiError, ConfigError, NodeError, NodeLabelError, ScriptError, _UsageError) as error:
        print(f"kubenodes: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 0


def _loop_factory(clock_page: str | None) -> Callable[[], asyncio.AbstractEventLoop]:
    """Loops in real time, or in the time of that clock page. Raises: _UsageError."""
    import asyncio

    if clock_page is None:
        return asyncio.new_event_loop
    from simclock.timewarp import CannotWarp, loops_at

    try:
        return loops_at(clock_page)
    except CannotWarp as problem:
        raise _UsageError(f"--clock-page: {problem}") from None


class _UsageError(Exception):
    """What was asked cannot be; the text says why, and what to do."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubenodes",
        description="Nodes at an API server, in one process: kubelets that behave, no containers.",
    )
    add_version(parser)
    parser.add_argument(
        "--kubeconfig", metavar="FILE", required=True, help="how to reach the API server"
    )
    parser.add_argument("--count", type=int, metavar="N", help="how many nodes (default 1)")
    parser.add_argument("--name", metavar="NAME", help="of the nodes: NAME-0, NAME-1, ...")
    parser.add_argument(
        "--nodes", metavar="FILE", help="a template: groups of nodes, and how containers behave"
    )
    parser.add_argument(
        "--ready-file",
        metavar="FILE",
        type=Path,
        help="is written when all nodes are ready: their names, one in each line",
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave nodes and pods at the API server at the end"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all random choices (default 0)")
    parser.add_argument(
        "--clock-page",
        metavar="FILE",
        help="live in the time of this clock page, with the programs and fakes that name it, too "
        "(python -m simclock.timewarp --clock-page FILE); it is made if there is none",
    )
    return parser


def _template(options: argparse.Namespace) -> Template:
    from kubenodes.template import NodeGroup, Template, load_template

    if options.nodes is not None:
        if options.count is not None or options.name is not None:
            raise _UsageError(
                "--nodes FILE says how many nodes there are, and their names; leave "
                "out --count and --name"
            )
        return load_template(options.nodes)
    count = 1 if options.count is None else options.count
    if count < 1:
        raise _UsageError(f"--count: wanted 1 or more, got {count}")
    return Template(nodes=(NodeGroup(name=options.name or "kube-node", count=count),))


async def _run(options: argparse.Namespace) -> int:
    """Run the nodes until a signal; 0 then."""
    import asyncio
    import signal
    import tempfile

    from fakecri.scripts.script import apply_script
    from kubenodes.pool import NodePool
    from refkubelet.api.lightkube_client import LightkubeApiClient

    template = _template(options)
    settings: list[NodeSettings] = template.settings()
    client = LightkubeApiClient.from_kubeconfig(options.kubeconfig)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="kubenodes-") as directory:
        try:
            pool = NodePool(settings, client, Path(directory), serves=True, seed=options.seed)
        except ValueError as problem:  # two groups of one name
            raise _UsageError(str(problem)) from None
        try:
            for node in pool:
                apply_script(template.script(), node.runtime)
            if await _done_before(stop, pool.__aenter__()):
                async with AsyncExitStack() as at_the_end:
                    at_the_end.push_async_exit(pool)
                    _tell(options.ready_file, [node.name for node in pool])
                    await stop.wait()
                    if options.keep:
                        pool.keep()
        finally:
            await pool.close()
            await client.aclose()
    return 0


async def _done_before(stop: asyncio.Event, step: Coroutine[Any, Any, Any]) -> bool:
    """Take the step to its end, unless `stop` is set before: it is cancelled then."""
    import asyncio

    doing, stopping = asyncio.create_task(step), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            return False
        await doing
        return True
    finally:
        for one in (doing, stopping):
            one.cancel()
        await asyncio.gather(doing, stopping, return_exceptions=True)


def _tell(ready_file: Path | None, names: Sequence[str]) -> None:
    """Raises _UsageError for a file that cannot be written."""
    if ready_file is not None:
        beside = ready_file.with_name(ready_file.name + ".new")
        try:
            beside.write_text("".join(f"{name}\n" for name in names))
            beside.rename(ready_file)
        except OSError as problem:
            raise _UsageError(f"--ready-file {ready_file}: {problem.strerror}") from None
    print(f"kubenodes: {len(names)} nodes are ready", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
