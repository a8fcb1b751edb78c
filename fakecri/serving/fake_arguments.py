"""The switches of `fakecri serve` that say what fake there is: its `Options` and its node."""

from __future__ import annotations

import argparse
from ipaddress import ip_address
from typing import Any, Final

import fakecri
from fakecri.control.ctl_args import duration, size

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
    "write_logs",
    "host_mounts",
    "call_limit",
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
    "image_root",
)
"""Fields of `FakeNode` that a switch of the same name sets."""


def add_fake_arguments(serve: argparse.ArgumentParser) -> None:
    """Add them. A switch that is not given leaves the default, or what the script says."""
    serve.add_argument(
        "--image-root",
        metavar="DIR",
        help="directory that the images are said to be in; a kubelet on this machine looks at the "
        "filesystem below it, so it must exist (default: what the script says, else /)",
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
        "--keep-events", dest="keep_events_s", type=duration, metavar="SECONDS",
        help="how long events wait for a subscriber (0; containerd 2: 300)",
    )  # fmt: skip
    off = {"action": "store_const", "const": False}
    group.add_argument(
        "--no-logs", dest="write_logs", help="write no log files of containers", **off
    )
    group.add_argument(
        "--no-host-mounts",
        dest="host_mounts",
        help="mounts of host paths are empty; else programs of containers read and write there",
        **off,
    )
    group.add_argument(
        "--pod-network",
        metavar="RANGE",
        help="where pods have their addresses: 10.88 (10.88.0.0/16, the default), 10.88.1, a range "
        "of IPv4 or IPv6, or one of each with a comma between; with 127.A[.B] what containers "
        "serve is really listened on",
    )


def _add_node(group: Any) -> None:
    amount = {"type": size, "metavar": "BYTES"}
    group.add_argument("--memory", dest="memory_bytes", help="of the machine: 8Gi", **amount)
    group.add_argument("--cpus", type=whole_number, metavar="NUMBER")
    group.add_argument("--disk", help="size of its one filesystem: 100Gi", **amount)
    group.add_argument("--swap", dest="swap_total_bytes", help="size of all swap areas", **amount)
    group.add_argument("--pid-limit", type=whole_number, metavar="NUMBER", help="of tasks")
    group.add_argument(
        "--node-address",
        dest="address",
        type=_address,
        metavar="IP",
        help="of pods on the host's network",
    )
    group.add_argument(
        "--cgroup-version", dest="cgroups_version", type=int, choices=(1, 2), help="(default: 2)"
    )


def whole_number(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a whole number from 1, got {text!r}")
    return int(text)


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"wanted an IP address, got {text!r}") from None


def made_of(arguments: argparse.Namespace) -> tuple[fakecri.FakeNode, dict[str, Any]]:
    """The node and the options of the fake: what switches say counts before what the script says.
    By default a served fake writes log files, and its containers see the host paths that are
    mounted into them. Raises ScriptError, ValueError."""
    fields: dict[str, Any] = {}
    described: dict[str, Any] = {}
    if arguments.script:
        # YAML takes a while to import.
        from fakecri.scripts.script import load_script, options_of

        script = load_script(arguments.script)
        fields, described = script.node_fields(), options_of(script)
    # A kubelet on this machine stats the directory of the images.
    node = fakecri.FakeNode(**{"image_root": "/", **fields, **_given(arguments, _NODE)})
    if arguments.disk is not None:
        node.filesystems["/"].capacity_bytes = arguments.disk
    by_default = {"write_logs": True, "host_mounts": True}
    return node, {**by_default, **described, **_given(arguments, _OPTIONS)}


def _given(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
