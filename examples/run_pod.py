"""A blocking CRI client in a few lines: what the other examples test.

    python run_pod.py unix://$dir/cri.sock shop web localhost/busybox:1

prints the id of the container it started.
"""

import sys

import grpc
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub


class Agent:
    """Runs one container in a pod of its own, and starts it again when it has ended."""

    def __init__(self, endpoint: str) -> None:
        address = endpoint.replace("unix://", "unix:", 1)
        self.channel = grpc.insecure_channel(address, [("grpc.default_authority", "localhost")])
        self.runtime = RuntimeServiceStub(self.channel)

    def run_sandbox(self, pod: str) -> None:
        meta = cri.PodSandboxMetadata(name=pod, namespace="default", uid=f"uid-{pod}")
        self.config = cri.PodSandboxConfig(metadata=meta)
        request = cri.RunPodSandboxRequest(config=self.config)
        self.sandbox_id = self.runtime.RunPodSandbox(request, timeout=10).pod_sandbox_id

    def run_container(self, name: str, image: str, attempt: int = 0) -> str:
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name, attempt=attempt),
            image=cri.ImageSpec(image=image),
        )
        request = cri.CreateContainerRequest(
            pod_sandbox_id=self.sandbox_id, config=config, sandbox_config=self.config
        )
        container_id = self.runtime.CreateContainer(request, timeout=10).container_id
        self.runtime.StartContainer(cri.StartContainerRequest(container_id=container_id))
        return container_id

    def state(self, container_id: str) -> str:
        request = cri.ContainerStatusRequest(container_id=container_id)
        status = self.runtime.ContainerStatus(request, timeout=10).status
        return cri.ContainerState.Name(status.state)

    def keep_running(self, container_id: str, name: str, image: str, attempt: int) -> str:
        """One look: the id of the container that runs now."""
        if self.state(container_id) == "CONTAINER_EXITED":
            return self.run_container(name, image, attempt)
        return container_id

    def close(self) -> None:
        self.channel.close()


if __name__ == "__main__":
    agent = Agent(sys.argv[1])
    agent.run_sandbox(sys.argv[2])
    print(agent.run_container(sys.argv[3], sys.argv[4]))
    agent.close()
