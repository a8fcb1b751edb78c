"""What is in a running fake or proxy, as plain data for JSON. It only reads."""

from __future__ import annotations

from typing import Any

from fakecri.control.answers import ContainerRow, NodeRow, RuleRow, SandboxRow, World
from fakecri.core.objects import Container, Sandbox
from fakecri.fake import FakeCRI
from fakecri.machine.node import FakeNode
from fakecri.recording.call import Call
from fakecri.rules.faults import Rule
from simclock import format_rfc3339


def state_of(cri: FakeCRI) -> World:
    """The runtime, the node, the sandboxes, the containers and the images of a fake."""
    return {
        "runtime": {"up": not cri.is_down, "network": cri.core.network.ready},
        "node": node_row(cri.node),
        "sandboxes": [sandbox_row(sandbox) for sandbox in cri.sandboxes()],
        "containers": [container_row(container) for container in cri.containers()],
        "images": [
            {"id": image.id, "tags": list(image.tags), "size_bytes": image.size_bytes}
            for image in cri.images.images.values()
        ],
    }


def container_row(container: Container) -> ContainerRow:
    """One container. `exit_code` means something only after its end."""
    pod = container.pod
    return {
        "id": container.id,
        "sandbox_id": container.sandbox.id,
        "pod": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "name": container.name,
        "attempt": container.attempt,
        "image": container.config.image.user_specified_image or container.config.image.image,
        "state": container.state.name,
        "created_at": _instant(container.created_at_ns),
        "started_at": _instant(container.run.started_at_ns),
        "finished_at": _instant(container.outcome.finished_at_ns),
        "exit_code": container.outcome.exit_code,
        "reason": container.outcome.reason,
        "message": container.outcome.message,
        "log_path": container.output.path,
    }


def sandbox_row(sandbox: Sandbox) -> SandboxRow:
    """One sandbox."""
    meta = sandbox.config.metadata
    return {
        "id": sandbox.id,
        "pod": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "attempt": meta.attempt,
        "state": "READY" if sandbox.ready else "NOTREADY",
        "created_at": _instant(sandbox.created_at_ns),
        "ip": sandbox.ip,
        "ips": list(sandbox.ips),
    }


def node_row(node: FakeNode) -> NodeRow:
    """The machine: its size, what others than the containers use of it, and what is left."""
    memory = node.memory()
    pids = node.pids()
    return {
        "cpus": node.cpu_count(),
        "boot_id": node.boot,
        "memory_bytes": node.memory_bytes,
        "base_memory_used_bytes": node.base_memory_used_bytes,
        "memory_working_set_bytes": memory.working_set_bytes,
        "swap_total_bytes": node.swap_total_bytes,
        "pid_limit": pids.limit,
        "base_pids": node.base_pids,
        "pids": pids.running,
        "image_root": node.image_root,
        "container_root": node.container_root,
        "filesystems": {
            path: {
                "capacity_bytes": fs.capacity_bytes,
                "base_used_bytes": fs.base_used_bytes,
                "available_bytes": node.filesystem(path).available_bytes,
                "inodes": fs.inodes,
                "base_used_inodes": fs.base_used_inodes,
            }
            for path, fs in node.filesystems.items()
        },
    }


def rule_row(number: int, rule: Rule) -> RuleRow:
    """One rule. `left`: how often it can still act; None: it does not run out."""
    return {
        "id": number,
        "what": rule.what,
        "hits": rule.hits,
        "left": rule.left,
        "active": rule.active,
    }


def call_row(call: Call, t0_s: float) -> dict[str, Any]:
    """One call in the form of the recorded kubelet runs, with the pod and container that it was
    about. Its times are seconds after `t0_s`."""
    return {
        "seq": call.seq,
        **call.to_dict(t0_s=t0_s),
        "pod": call.pod,
        "container": call.container,
        "attempt": call.attempt,
    }


def _instant(wall_ns: int) -> str | None:
    return format_rfc3339(wall_ns, digits=9) if wall_ns else None
