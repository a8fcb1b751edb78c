"""What control requests may bring along: their bodies and queries, as structs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.fields import Amount, Bytes, Count, ExitCode, Method, Name, Seconds
from kubeobjects.strict.reader import Placed, Strict

# -- actions -----------------------------------------------------------------------------------


class _OfPod(Strict):
    pod: Name | UnsetType = UNSET


class _OfContainer(_OfPod, rename={"name": "container"}):
    name: Name | UnsetType = UNSET


class Exit(_OfContainer, rename={"name": "container"}):
    """The newest running container that fits ends by itself."""

    code: ExitCode | UnsetType = UNSET


class Kill(_OfContainer, rename={"name": "container"}):
    """Kill the newest running container that fits."""

    exit_code: ExitCode | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Drop(_OfContainer, rename={"name": "container"}):
    """The newest container that fits vanishes from the runtime."""


class KillSandbox(_OfPod):
    """The newest sandbox that fits dies."""


class StopSandbox(_OfPod):
    """Another client stops the newest sandbox that fits."""


class LoseNetwork(Strict):
    """The node has no pod network."""


class RestoreNetwork(Strict):
    """The pod network is back."""


class Crash(Strict):
    """The runtime goes down: calls fail with UNAVAILABLE."""

    loses_state: bool | UnsetType = UNSET


class Restart(Strict):
    """The runtime is up again."""

    lost_exits: bool | UnsetType = UNSET


class Reboot(Strict):
    """The node reboots."""


class Oom(Strict):
    """The node is out of memory: the kernel kills a process."""

    process: Annotated[str, Meta(description="one outside of all pods")] | UnsetType = UNSET
    pid: Amount | UnsetType = UNSET


class KernelSays(Strict):
    """The node's kernel writes a line into its log."""

    text: str


ACTIONS: Final[dict[str, type[Strict]]] = {
    "exit": Exit,
    "kill": Kill,
    "drop": Drop,
    "kill_sandbox": KillSandbox,
    "stop_sandbox": StopSandbox,
    "lose_network": LoseNetwork,
    "restore_network": RestoreNetwork,
    "crash": Crash,
    "restart": Restart,
    "reboot": Reboot,
    "oom": Oom,
    "kernel_says": KernelSays,
}
"""What can be made to happen, by the name of the method, with its arguments."""


# -- calls -------------------------------------------------------------------------------------


class _Calls(Strict):
    pod: Name | UnsetType = UNSET
    container: Name | UnsetType = UNSET
    image: Name | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    since_s: Annotated[Seconds, Meta(description="seconds since the start")] | UnsetType = UNSET


class CallsQuery(_Calls):
    """Which calls."""

    method: Method | UnsetType = UNSET
    limit: Annotated[Amount, Meta(description="only the last so many")] | UnsetType = UNSET


class Step(_Calls):
    """A call of an order."""

    method: Method | UnsetType = UNSET


class NotCalled(_Calls, kw_only=True):
    """There was no such call."""

    method: Method


class Called(NotCalled):
    """There were such calls: at least one, or exactly so many."""

    times: Amount | UnsetType = UNSET


class Series(NotCalled, kw_only=True):
    """Such calls came so many seconds after the first of them."""

    expected_s: list[Seconds]
    slack_s: Seconds | UnsetType = UNSET


class Assertion(Strict):
    """What has to be so: exactly one of these."""

    called: Called | UnsetType = UNSET
    not_called: NotCalled | UnsetType = UNSET
    order: (
        Annotated[list[Method | Step], Meta(description="names of methods, or mappings")]
        | UnsetType
    ) = UNSET
    series: Series | UnsetType = UNSET

    exactly_one: ClassVar = ("called", "not_called", "order", "series")

    def kind_and_arguments(self) -> tuple[str, dict[str, Any]]:
        """Which assertion it is, and the arguments of the method."""
        kind, found = next(iter(self.given().items()))
        if kind != "order":
            return kind, found.given()
        return kind, {"steps": [one if isinstance(one, str) else one.given() for one in found]}


# -- the rest ----------------------------------------------------------------------------------


class Advance(Strict):
    """How much time passes."""

    advance_s: Seconds


class FilesystemChange(Placed):
    """What changes of a filesystem."""

    capacity_bytes: Bytes | UnsetType = UNSET
    base_used_bytes: Bytes | UnsetType = UNSET
    inodes: Amount | UnsetType = UNSET
    base_used_inodes: Amount | UnsetType = UNSET


class NodeChange(Placed):
    """What changes of the node."""

    memory_bytes: Bytes | UnsetType = UNSET
    base_memory_used_bytes: Bytes | UnsetType = UNSET
    cpus: Count | UnsetType = UNSET
    pid_limit: Amount | UnsetType = UNSET
    base_pids: Amount | UnsetType = UNSET
    swap_total_bytes: Bytes | UnsetType = UNSET
    image_root: str | UnsetType = UNSET
    container_root: str | UnsetType = UNSET
    filesystems: (
        Annotated[dict[str, FilesystemChange], Meta(description="by the path of the mount")]
        | UnsetType
    ) = UNSET


class RulesQuery(Strict):
    """Which rules."""

    unused: (
        Annotated[
            Literal["1", "true", "0", "false"], Meta(description="only those that were never hit")
        ]
        | UnsetType
    ) = UNSET


class ContainersQuery(_OfContainer, rename={"name": "container"}):
    """Which containers."""


class SandboxesQuery(_OfPod):
    """Which sandboxes."""
