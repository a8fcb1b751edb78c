"""The switches of `fakecri serve` that say what fake there is: its `Options` and its node."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from fakecri.control.ctl_args import bytes_of

_OPTIONS: Final = (
    "images",
    "sandbox_image",
    "programs",
    "runtime_name",
    "runtime_version",
    "runtime_handlers",
    "cgroup_driver",
    "keep_events_s",
    "pod_network",
    "script",
)
"""Fields of `Options` that a switch of the same name sets."""
_NODE: Final = (
    "memory_bytes",
    "cpus",
    "swap_total_bytes",
    "pid_limit",
    "address",
    "cgroups_version",
)
"""Fields of `FakeNode` that a switch of the same name sets."""


def add_fake_arguments(serve: argparse.ArgumentParser) -> None:
    """Add them. A switch that is not given leaves the default, or what the script says."""
    serve.add_argument(
        "--image-root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="directory that the images are said to be in; a kubelet on this machine looks at the "
        "filesystem below it, so it must exist (default: %(default)s)",
    )
    _add_options(serve.add_argument_group("the runtime"))
    _add_node(serve.add_argument_group("its node"))


def _add_options(group: Any) -> None:
    several = {"action": "append", "metavar": "NAME"}
    group.add_argument(
        "--image", dest="images", help="an image that is there; repeat it", **several
    )
    group.add_argument("--sandbox-image", metavar="NAME", help="what sandboxes run, pinned")
    group.add_argument(
        "--program", dest="programs", help="a program that images have; repeat it", **several
    )
    group.add_argument("--runtime-name", metavar="NAME", help="what Version says (fakecri)")
    group.add_argument("--runtime-version", metavar="TEXT", help="what Version says")
    group.add_argument(
        "--runtime-handler", dest="runtime_handlers", help="a runtime class; repeat it", **several
    )
    group.add_argument(
        "--cgroup-driver", choices=("cgroupfs", "systemd"), help="what RuntimeConfig says"
    )
    group.add_argument(
        "--keep-events", dest="keep_events_s", type=float, metavar="SECONDS",
        help="how long events wait for a subscriber (0; containerd 2: 300)",
    )  # fmt: skip
    group.add_argument("--no-logs", action="store_true", help="write no log files of containers")
    group.add_argument(
        "--no-host-mounts",
        action="store_true",
        help="mounts of host paths are empty; else programs of containers read and write there",
    )
    group.add_argument(
        "--pod-network",
        metavar="RANGE",
        help="where pods have their addresses: 10.88 (10.88.0.0/16, the default), 10.88.1, a range "
        "of IPv4 or IPv6, or one of each with a comma between; with 127.A[.B] what containers "
        "serve is really listened on",
    )


def _add_node(group: Any) -> None:
    size = {"type": bytes_of, "metavar": "BYTES"}
    group.add_argument("--memory", dest="memory_bytes", help="of the machine: 8Gi", **size)
    group.add_argument("--cpus", type=int, metavar="NUMBER")
    group.add_argument("--disk", help="size of its one filesystem: 100Gi", **size)
    group.add_argument("--swap", dest="swap_total_bytes", help="size of all swap areas", **size)
    group.add_argument("--pid-limit", type=int, metavar="NUMBER", help="tasks there may be")
    group.add_argument(
        "--node-address", dest="address", metavar="IP", help="of pods on the host's network"
    )
    group.add_argument(
        "--cgroup-version", dest="cgroups_version", type=int, choices=(1, 2), default=2,
        help="(default: %(default)s)",
    )  # fmt: skip


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `FakeCRI` that were given; a served fake writes log files, and its
    containers see the host paths that are mounted into them."""
    return {
        **_given(arguments, _OPTIONS),
        "write_logs": not arguments.no_logs,
        "host_mounts": not arguments.no_host_mounts,
        "call_limit": arguments.keep_calls,
    }


def node_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of its node that were given, and `disk`, the size of its filesystem."""
    # A kubelet on this machine stats the image directory.
    return {
        **_given(arguments, (*_NODE, "disk")),
        "image_root": str(arguments.image_root),
    }


def _given(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
