"""What a fake is made with, beside its clock, ids and node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypedDict

from kubecri.v1 import api_pb2 as pb

from fakecri.behaviors.matching import require_count
from fakecri.core import addresses
from fakecri.core.image_store.images import Registry, any_image
from kubeobjects.arguments import arguments_told
from simclock import Latency

DEFAULT_IMAGES: Final = ("localhost/busybox:1", "localhost/busybox:2", "localhost/pause:1")

SANDBOX_IMAGE: Final = "localhost/pause:1"

CGROUP_DRIVERS: Final = {"cgroupfs": pb.CGROUPFS, "systemd": pb.SYSTEMD}


@arguments_told
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a fake runtime is made; each may also be given to `FakeCRI` and `serve` by name."""

    images: Iterable[str] = DEFAULT_IMAGES
    """Present from the start."""
    sandbox_image: str = SANDBOX_IMAGE
    """What sandboxes run: it is pinned (CRI-093)."""
    registry: Registry = any_image
    """Where every other image is pulled from; by default it has all of them."""
    programs: Iterable[str] = ()
    """Names of programs that images have beside the fake's own; they succeed. `*`: every one."""
    write_logs: bool = False
    """True: log files are written where the create request says."""
    host_mounts: bool = False
    """True: programs of containers see the files of this machine in mounts of host paths, and write
    there unless the mount is read-only. False: such mounts are empty directories in memory."""
    runtime_name: str = "fakecri"
    """What Version says."""
    runtime_version: str = ""
    """What Version says; "": the version of this package."""
    runtime_handlers: Iterable[str] = ()
    """The names that RunPodSandbox takes beside "" (CRI-030)."""
    keep_events_s: float = 0.0
    """How long events wait for a subscriber when there is none; 300 in containerd 2 (CRI-143)."""
    cgroup_driver: str = "cgroupfs"
    """What RuntimeConfig says: cgroupfs or systemd."""
    pod_network: str = addresses.DEFAULT
    """Where pods have their addresses: `10.88` (short for 10.88.0.0/16), `10.88.1`, a range of IPv4
    or IPv6, or one of each with a comma between. Inside 127.0.0.0/8 the ports that containers serve
    are really listened on, in real time."""
    call_limit: int = 100_000
    """So many calls are remembered."""
    latency: Latency | None = None
    """How long calls take beside what they do, for example `cri_latency(Rng(1))`; None: no time."""
    script: str | Path | None = None
    """A script file to begin with. What its `runtime` and `images` say counts where nothing is said
    here, its `node` where no node is given."""

    def __post_init__(self) -> None:
        if self.cgroup_driver not in CGROUP_DRIVERS:
            raise ValueError(
                f"cgroup_driver: wanted cgroupfs or systemd, got {self.cgroup_driver!r}"
            )
        for name in ("images", "programs", "runtime_handlers"):
            names = getattr(self, name)
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise ValueError(f"{name}: wanted a list of names, got {names!r}")
            # An iterator can be read once, and a reset reads the names again.
            object.__setattr__(self, name, tuple(names))
        if not callable(self.registry):
            expected_form = "a function such as registry_of([...]) makes"
            raise ValueError(f"registry: wanted {expected_form}, got {self.registry!r}")
        if not 0 <= self.keep_events_s <= 1e9:  # it is counted in nanoseconds
            raise ValueError(
                f"keep_events_s: wanted seconds from 0 to 1e9, got {self.keep_events_s!r}"
            )
        require_count("call_limit", self.call_limit)
        addresses.parse_network(self.pod_network)

    def completed(self, described: Mapping[str, Any], given: Collection[str]) -> Options:
        """These options with the fields that a script describes, but for those that are `given`
        or not at their default."""
        default = Options()
        unsaid = {
            name: value
            for name, value in described.items()
            if name not in given and getattr(self, name) == getattr(default, name)
        }
        return replace(self, **unsaid)


class OptionFields(TypedDict, total=False):
    """The fields of `Options` as keyword arguments."""

    images: Iterable[str]
    sandbox_image: str
    registry: Registry
    programs: Iterable[str]
    write_logs: bool
    host_mounts: bool
    runtime_name: str
    runtime_version: str
    runtime_handlers: Iterable[str]
    keep_events_s: float
    cgroup_driver: str
    pod_network: str
    call_limit: int
    latency: Latency | None
    script: str | Path | None


def chosen_options(options: Options | None, fields: OptionFields) -> Options:
    """The options with these fields changed; None: the defaults."""
    return replace(options or Options(), **fields)
