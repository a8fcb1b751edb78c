"""What a machine and a runtime are made with: each setting once.

From these rows come the sections `node` and `runtime` of scripts, the switches of `fakecri serve`,
the options of `fakecri ctl node` and the body that changes a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple


class Setting(NamedTuple):
    """One setting."""

    word: str
    """In scripts and in `ctl`."""
    field: str
    """Of `FakeNode`, of its filesystem or of `Options`."""
    kind: str | type | tuple[Any, ...]
    """The name of a kind of `fakecri.scripts.fields`, a type, or the values that there are."""
    about: str = ""
    switch: str = ""
    """Of `fakecri serve`, if it has one."""
    changes: bool = False
    """Whether that of a running fake can be changed."""

    @property
    def option(self) -> str:
        """Of `ctl`."""
        return f"--{self.word.replace('_', '-')}"


_RANGE: Final = (
    "where pods have their addresses: 10.88 (10.88.0.0/16, the default), 10.88.1, a range of IPv4 "
    "or IPv6, or one of each with a comma between; with 127.A[.B] what containers serve is really "
    "listened on"
)
_IMAGES: Final = (
    "directory that the images are said to be in; a kubelet on this machine looks at the "
    "filesystem below it, so it must exist (default: what the script says, else /)"
)
_MOUNTS: Final = "whether containers see this machine's files in mounts, and write there"
NODE: Final = (
    Setting("memory", "memory_bytes", "Bytes", "of the machine: 8Gi", "--memory", changes=True),
    Setting(
        "memory_used", "base_memory_used_bytes", "Bytes", "by others than containers", changes=True
    ),
    Setting("cpus", "cpus", "Count", "of the machine", "--cpus", changes=True),
    Setting("swap", "swap_total_bytes", "Bytes", "size of all swap areas", "--swap", changes=True),
    Setting("pid_limit", "pid_limit", "Count", "tasks there may be", "--pid-limit", changes=True),
    Setting("pids_used", "base_pids", "Amount", "by others than containers", changes=True),
    Setting("address", "address", "Address", "of pods on the host's network", "--node-address"),
    Setting("cgroup_version", "cgroups_version", (1, 2), "(default: 2)", "--cgroup-version"),
    Setting("image_root", "image_root", str, _IMAGES, "--image-root", changes=True),
    Setting(
        *("container_root", "container_root", str),
        *("where writable layers are, if not with the images", ""),
        changes=True,
    ),
)
DISK: Final = (
    Setting(
        *("disk", "capacity_bytes", "Bytes", "size of its one filesystem: 100Gi", "--disk"),
        changes=True,
    ),
    Setting("disk_used", "base_used_bytes", "Bytes", "by others than containers", changes=True),
    Setting("inodes", "inodes", "Amount", "of its one filesystem", changes=True),
    Setting("inodes_used", "base_used_inodes", "Amount", "by others than containers", changes=True),
)
RUNTIME: Final = (
    Setting("name", "runtime_name", str, "what Version says (fakecri)", "--runtime-name"),
    Setting("version", "runtime_version", str, "what Version says", "--runtime-version"),
    Setting("handlers", "runtime_handlers", list[str], "runtime classes", "--runtime-handler"),
    Setting(
        *("cgroup_driver", "cgroup_driver", ("cgroupfs", "systemd")),
        *("what RuntimeConfig says", "--cgroup-driver"),
    ),
    Setting("sandbox_image", "sandbox_image", "Image", "what sandboxes run", "--sandbox-image"),
    Setting(
        *("keep_events", "keep_events_s", "Seconds"),
        *("how long events wait for a subscriber (0; containerd 2: 300)", "--keep-events"),
    ),
    Setting("pod_network", "pod_network", str, _RANGE, "--pod-network"),
    Setting("logs", "write_logs", bool, "whether log files are written", "--logs"),
    Setting("host_mounts", "host_mounts", bool, _MOUNTS, "--host-mounts"),
    Setting("keep_calls", "call_limit", "CallLimit", "so many calls are remembered"),
)


def by_field(settings: Iterable[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given by the words of these settings, by their fields."""
    return {setting.field: given[setting.word] for setting in settings if setting.word in given}
