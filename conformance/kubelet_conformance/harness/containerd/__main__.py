"""`python -m kubelet_conformance.harness.containerd [WORKDIR]`: a real containerd to try things on.

Prints the endpoint and directories, and runs until Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fakecri.cri.endpoint import EndpointError
from kubelet_conformance.harness.containerd.docker_host import (
    NodeError,
    docker_client,
    docker_problem,
)
from kubelet_conformance.harness.containerd.image import ensure_image
from kubelet_conformance.harness.containerd.start import start_containerd
from kubelet_conformance.harness.containerd.versions import (
    DEFAULT_VERSION,
    VERSION_VARIABLE,
    VERSIONS,
    release_of,
)


def _report(line: str) -> None:
    print(line, file=sys.stderr)


async def _run(workdir: Path, version: str | None) -> None:
    """Keep containerd running until a signal comes."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with start_containerd(workdir, version=version, report=_report) as node:
        print(f"containerd {node.version}")
        print(f"endpoint     {node.endpoint}")
        print(f"pod logs     {node.log_root}")
        print(f"kubelet root {node.kubelet_root}", flush=True)
        await ended.wait()


@contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    """The given directory, or a new one that is removed at the end."""
    if given is not None:
        yield given
        return
    own = Path(tempfile.mkdtemp(prefix="refkubelet-containerd-"))
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _image(version: str | None) -> str:
    """Make the image if it is not there, and return its tag. Raises NodeError."""
    release = release_of(version)
    if problem := docker_problem():
        raise NodeError(problem)
    with closing(docker_client()) as client:
        return ensure_image(client, release, _report)


def main() -> int:
    """Exit code 0 after a signal, 2 if the node cannot be started or the image not made."""
    parser = argparse.ArgumentParser(
        prog="python -m kubelet_conformance.harness.containerd",
        description="Start a real containerd in a container and keep it until Ctrl-C.",
    )
    parser.add_argument(
        "workdir",
        nargs="?",
        type=Path,
        help="socket, logs and roots go here (default: a new directory, removed at the end)",
    )
    parser.add_argument(
        "--containerd-version",
        metavar="VERSION",
        help=f"{', '.join(VERSIONS)} (default: {VERSION_VARIABLE}, else {DEFAULT_VERSION})",
    )
    parser.add_argument(
        "--image-only", action="store_true", help="make the image if it is not there, and end"
    )
    options = parser.parse_args()
    try:
        if options.image_only:
            print(_image(options.containerd_version))
        else:
            with _directory(options.workdir) as workdir:
                asyncio.run(_run(workdir, options.containerd_version))
    except (NodeError, EndpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
