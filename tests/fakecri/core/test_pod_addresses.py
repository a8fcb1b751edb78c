"""Pods' addresses: in the range that was asked for, as CNI's host-local plugin gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import pod_config, run_pod, sandbox_status

from fakecri import FakeCRI
from fakecri.cli import main


async def run(fake: FakeCRI, name: str) -> cri.PodSandboxStatus:
    return await sandbox_status(fake, await run_pod(fake, pod_config(name)))


async def stop(fake: FakeCRI, status: cri.PodSandboxStatus) -> None:
    await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=status.id))


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("network", "first", "more"),
    [
        ("10.88", "10.88.0.2", []),
        ("10.88.7", "10.88.7.2", []),
        ("10.99.4.0/22", "10.99.4.2", []),
        ("fd00:88::/112", "fd00:88::2", []),
        ("10.99, fd00:88::/64", "10.99.0.2", ["fd00:88::2"]),
        ("fd00:88::/64,10.99", "fd00:88::2", ["10.99.0.2"]),
    ],
)
async def test_pods_have_addresses_of_their_network_CRI_035(
    network: str, first: str, more: list[str]
) -> None:
    status = await run(FakeCRI(pod_network=network), "a")
    assert status.network.ip == first
    assert [one.ip for one in status.network.additional_ips] == more


@pytest.mark.parametrize(
    "network",
    ["", "10", "10.88.1.2", "10.x", "300.1", "010.1", "10.88.0.1/16", "10.88.0.0/31", "fd00::/127",
     "fd00::1", "nonsense", "10.88,10.89", "10.88,", "10.88,fd00::/64,fd01::/64", "224.1",
     "10.88.0.0/33", "::/64", "١٠.٨٨", 5, None],
)  # fmt: skip
def test_what_is_no_network_is_one_clear_error(network: Any) -> None:
    with pytest.raises(ValueError, match="pod_network: wanted a range such as") as error:
        FakeCRI(pod_network=network)
    assert "\n" not in str(error.value)


def test_serve_refuses_a_network_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", "--listen", f"unix://{tmp_path}/c.sock", "--pod-network", "10.88.1.2"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("fakecri: error: --pod-network: wanted a range such as 10.88, ")
    assert said.count("\n") == 1


@pytest.mark.virtual_time
async def test_a_network_that_is_used_up_fails_the_sandbox_CRI_030_CRI_032() -> None:
    fake = FakeCRI(pod_network="10.77.0.0/29")
    ips = [(await run(fake, f"p{i}")).network.ip for i in range(5)]
    assert ips == [f"10.77.0.{i}" for i in range(2, 7)]
    with pytest.raises(grpc.RpcError) as failure:
        await run(fake, "more")
    assert failure.value.code() is grpc.StatusCode.UNKNOWN
    assert failure.value.details().endswith(
        ': plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses '
        "available in range set: 10.77.0.1-10.77.0.6"
    )
    assert len(fake.sandboxes()) == 5


@pytest.mark.virtual_time
async def test_addresses_come_back_in_turn_CRI_036() -> None:
    fake = FakeCRI(pod_network="10.77.0.0/29")
    pods = [await run(fake, f"p{i}") for i in range(4)]
    await stop(fake, pods[2])
    await stop(fake, pods[0])
    ips = [(await run(fake, name)).network.ip for name in ("a", "b", "c")]
    assert ips == ["10.77.0.6", "10.77.0.2", "10.77.0.4"]


@pytest.mark.virtual_time
async def test_pods_without_addresses_take_none_CRI_033() -> None:
    fake = FakeCRI(pod_network="10.77.0.0/30")
    config = pod_config("host")
    config.linux.security_context.namespace_options.network = cri.NODE
    await run_pod(fake, config)
    assert (await run(fake, "a")).network.ip == "10.77.0.2"
