"""A bug, reproduced: CreateContainer runs into its deadline, the retry finds the name taken.

The runtime goes on creating after the caller has given up, so the name of that attempt stays
reserved. A client that tries again with the same attempt number fails until the runtime is done
(with containerd: minutes, or for ever when the disk hangs). One that counts up gets through.
"""

from collections.abc import Callable

from kubecri.v1 import api_pb2 as cri

from fakecri import CriError, CriTarget, FakeCRI
from simclock import run_virtual

POD = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="shop", uid="u1"))


async def create_web(runtime: CriTarget, attempt_of: Callable[[int], int]) -> list[str]:
    """Three tries to create the container; what each of them came to."""
    sandbox = await runtime.call("RunPodSandbox", cri.RunPodSandboxRequest(config=POD))
    results = []
    for number in range(3):
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="web", attempt=attempt_of(number)),
            image=cri.ImageSpec(image="localhost/busybox:1"),
        )
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox.pod_sandbox_id, config=config, sandbox_config=POD
        )
        try:
            await runtime.call("CreateContainer", request, timeout_s=120)
        except CriError as error:
            results.append(f"{error.code().name}: {error.details()}")
        else:
            return [*results, "created"]
    return results


def test_the_same_attempt_again_finds_its_name_reserved(fakecri: FakeCRI) -> None:
    fakecri.on("CreateContainer", nth=1).holds_name()
    results = run_virtual(lambda: create_web(fakecri, attempt_of=lambda number: 0))
    assert results[0].startswith("DEADLINE_EXCEEDED")
    assert "failed to reserve container name" in results[1]
    assert "is reserved for" in results[2]


def test_the_next_attempt_gets_through(fakecri: FakeCRI) -> None:
    fakecri.on("CreateContainer", nth=1).holds_name()
    results = run_virtual(lambda: create_web(fakecri, attempt_of=lambda number: number))
    assert results[-1] == "created"
    assert len(results) == 2
