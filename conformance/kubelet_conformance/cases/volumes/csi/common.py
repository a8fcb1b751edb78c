"""What the cases of storage drivers share: a driver with plug-in and volumes, and their pods."""

from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from fakecri.deviceplugin.registered import RegisteredPlugin, csi_plugin
from kubelet_conformance.cases.volumes.common import with_volume
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature

NEEDS: Final = [Feature.API, Feature.STATUS, Feature.DEVICE_PLUGINS]
RESTART: Final = [*NEEDS, Feature.RESTART]
LONG: Final = [*NEEDS, Feature.VIRTUAL_TIME]
DISKS: Final = "disks.example"
"""The driver."""
HANDLE: Final = "vol-1"
"""What it calls the volume."""
STAGE: Final = "STAGE_UNSTAGE_VOLUME"
BOTH: Final[dict[str, Any]] = {"volumeLifecycleModes": ["Persistent", "Ephemeral"]}
"""What a CSIDriver object says of a driver that takes inline volumes, too."""
SOCKET: Final = "disks.sock"
FOUND_S: Final = limits.START_S + limits.REGISTER_S
AGAIN_S: Final = 20.0
"""Tries come after 0.5, 1, 2, 4 and 8 seconds (NODE-202.2)."""
CALL_S: Final = 120.0
"""How long one call may take."""
SLOW_S: Final = 40.0
"""How long a driver takes for a call during which something else happens."""
RESTARTED_S: Final = limits.REGISTER_S + AGAIN_S
"""Until a new kubelet has done something for the volumes of its pods."""
END_S: Final = limits.STOP_S + limits.STATUS_PASS_S + limits.HOUSEKEEPING_S
"""Until the volumes of a deleted pod were taken away."""
VOLUME_CALLS: Final = (
    "NodeStageVolume",
    "NodePublishVolume",
    "NodeUnpublishVolume",
    "NodeUnstageVolume",
)
IN, OUT = VOLUME_CALLS[:2], VOLUME_CALLS[2:]
NOT_FOUND: Final = f"driver name {DISKS} not found in the list of registered CSI drivers"


async def told(node: Node, plugin: RegisteredPlugin, times: int = 1) -> tuple[bool, str]:
    """Run until the plug-in was told so often how its registration went: the last of these."""
    await node.run_until(
        lambda: len(plugin.told) >= times, within_s=FOUND_S, what="a registration status"
    )
    return plugin.told[times - 1]


async def register(
    node: Node, driver: FakeCsiDriver, file: str = SOCKET, **plugin: Any
) -> RegisteredPlugin:
    """Let the driver listen, and wait until the kubelet has registered it."""
    plugin_made = csi_plugin(driver, **plugin)
    await node.plugins.offer(file, plugin_made)
    expect_equal(node, await told(node, plugin_made), (True, ""), "status of the registration")
    return plugin_made


async def a_driver(node: Node, *capabilities: str, **spec: Any) -> FakeCsiDriver:
    """The registered driver `DISKS` with these capabilities; `spec`: of its CSIDriver object,
    which attaches nothing unless it says so."""
    await node.storage.describe_driver(DISKS, **spec)
    driver = FakeCsiDriver(DISKS, capabilities=capabilities)
    await register(node, driver)
    return driver


def source(handle: str = HANDLE, **fields: Any) -> dict[str, Any]:
    """The source of a persistent volume of the driver."""
    return {"csi": {"driver": DISKS, "volumeHandle": handle, **fields}}


async def bind(node: Node, csi: dict[str, Any], name: str = "data", **spec: Any) -> None:
    """A claim of that name, bound to a persistent volume of that source: `pv`, or of another claim
    `pv-<name>`."""
    volume = volume_of(name)
    uid = await node.api.create_claim(name, volume)
    await node.api.create_volume(volume, csi, claim={"name": name, "uid": uid}, **spec)


def volume_of(claim: str) -> str:
    """The persistent volume of that claim."""
    return "pv" if claim == "data" else f"pv-{claim}"


def user(
    name: str = "web", *, claim: str = "data", read_only: bool = False, **spec: Any
) -> PodPlan:
    """A pod with the claim."""
    claim_source = {"claimName": claim, **({"readOnly": True} if read_only else {})}
    return with_volume(name, {"persistentVolumeClaim": claim_source}, **spec)


def inline(name: str = "web", pod: dict[str, Any] | None = None, **fields: Any) -> PodPlan:
    """A pod with an inline volume of the driver; `pod`: other fields of its spec."""
    return with_volume(name, {"csi": {"driver": DISKS, **fields}}, **(pod or {}))


async def run_pod(node: Node, plan: PodPlan, *, within_s: float = AGAIN_S) -> None:
    """Create the pod and run until it runs, however often its volume is tried."""
    await node.api.create_pod(plan)
    await wait_runs(node, plan.name, within_s=within_s)


async def wait_runs(node: Node, pod: str, *, within_s: float = AGAIN_S) -> None:
    """Run until the pod runs, however often its volume is tried."""
    await node.run_until(
        lambda: node.running(pod), within_s=within_s + limits.START_S, what=f"pod {pod} runs"
    )


async def wait_told(node: Node, why: str, *, pod: str = "web", within_s: float = AGAIN_S) -> None:
    """Run until an event FailedMount has that message, and expect no sandbox of the pod before."""
    await node.run_until(
        lambda: why in [event["message"] for event in node.events("FailedMount", pod=pod)],
        within_s=within_s + limits.START_S,
        what=f"an event FailedMount: {why}",
    )
    expect_equal(node, node.count("RunPodSandbox", pod=pod), 0, "sandboxes")


async def end_pod(node: Node, pod: str = "web", *, within_s: float = END_S) -> None:
    """Delete the pod and run until it is gone."""
    await node.api.delete_pod(pod)
    await node.run_until(
        lambda: node.api.pod(pod) is None, within_s=within_s, what=f"pod {pod} is gone"
    )


async def wait_calls(
    node: Node, driver: FakeCsiDriver, method: str, times: int = 1, *, within_s: float = AGAIN_S
) -> Any:
    """Run until the driver got that call so often: the request of the last of them."""
    await node.run_until(
        lambda: len(driver.requests(method)) >= times,
        within_s=within_s + limits.START_S,
        what=f"{times} calls of {method}",
    )
    return driver.requests(method)[times - 1]


def expect_calls(
    node: Node, driver: FakeCsiDriver, wanted: tuple[str, ...], what: str = "calls"
) -> None:
    """Expect exactly these calls for volumes, in order."""
    methods = driver.methods(*VOLUME_CALLS)
    expect_equal(node, methods, list(wanted), f"{what} of the driver")


def expect_given(node: Node, pod: str, path: object, *, read_only: bool = False) -> None:
    """Expect that the pod's container got that path at /v."""
    mounts = node.calls("CreateContainer", pod=pod)[0].request.config.mounts
    mount = next(m for m in mounts if m.container_path == "/v")
    mount_fields = mount.host_path, mount.readonly
    expect_equal(node, mount_fields, (str(path), read_only), "path and read-only of the mount")


def expect_no_failure(node: Node, pod: str = "web") -> None:
    """Expect that no event told of a volume that could not be mounted."""
    told_of = [event["message"] for event in node.events("FailedMount", pod=pod)]
    expect(node, not told_of, "no event FailedMount", told_of)


def mode(request: Any) -> str:
    """The access mode that a request wants, by its name."""
    access_mode = request.volume_capability.access_mode
    field = access_mode.DESCRIPTOR.fields_by_name["mode"]
    return str(field.enum_type.values_by_number[access_mode.mode].name)


async def running(node: Node, *capabilities: str) -> FakeCsiDriver:
    """The driver, and the pod `web` that runs with its volume."""
    driver = await a_driver(node, *capabilities)
    await bind(node, source())
    await run_pod(node, user())
    return driver


async def wait_end(node: Node, driver: FakeCsiDriver, *, within_s: float = END_S) -> None:
    """Run until the volume was taken from pod and node, and its directories are gone."""
    staging = node.storage.staging_path(DISKS, HANDLE)
    await node.run_until(
        lambda: not driver.staged and not driver.published and not staging.parent.exists(),
        within_s=within_s + AGAIN_S,
        what="the volume was unpublished and unstaged, and its directory is gone",
    )
