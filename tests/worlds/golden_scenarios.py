"""What the containers of the recorded scenarios do, in the words of the fake runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from golden_recording import Recording, Step
from kubecri.v1 import api_pb2 as cri
from node_world import Node

from fakecri import (
    exits,
    ignores,
    oom_kills_child,
    replies,
    stops,
    uses,
    writes_termination_message,
)

PREROLL_S: Final = 2.9  # relists came about 0.1 s after the second in most recordings
MIB: Final = 1024**2
ABSENT: Final = "cat: can't open '{}': No such file or directory\n"
POLITE: Final = stops(0, after_s=0.15)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`containers` programs the fake; what it leaves open, containers do not end by themselves
    and end with code 0 when they are told to."""

    program: Callable[[Node], None] | None = None
    more: tuple[Step, ...] = ()  # what was done, as the calls show, but not written down
    late_s: float = 0.0  # a step was written down that long after it was done

    def containers(self, node: Node) -> None:
        node.cri.behaves(POLITE)
        if self.program is not None:
            self.program(node)


def crash_loop(node: Node) -> None:
    node.cri.behaves(exits(3, after_s=1))


def on_failure(node: Node) -> None:
    node.cri.behaves(exits(1, after_s=1))
    node.cri.behaves(exits(0, after_s=1), attempt=2)


def never(node: Node) -> None:
    node.cri.behaves(exits(1, after_s=1), writes_termination_message("last words\n"))


def init_containers(node: Node) -> None:
    node.cri.behaves(exits(0, after_s=1), container="i?")


def sidecars(node: Node) -> None:
    node.cri.behaves(exits(0, after_s=1), container="pre")
    node.cri.behaves(stops(0, after_s=1.1), container="main")
    node.cri.behaves(stops(0, after_s=0.6), container="side?")


def slower_sidecars(node: Node) -> None:
    """As `sidecars` did on a machine that was busier: two seconds go by before the last stop."""
    sidecars(node)
    node.cri.behaves(stops(0, after_s=1.35), container="main")
    node.cri.behaves(stops(0, after_s=0.7), container="side?")


def sidecar_of_a_job(node: Node) -> None:
    node.cri.behaves(exits(0, after_s=4), container="main")
    node.cri.behaves(stops(0, after_s=0.6), container="side")


def hook_and_stubborn(node: Node) -> None:
    node.cri.behaves(ignores("SIGTERM"), container="stubborn")
    slow = replies(["/bin/sh", "-c", "sleep 2"], delay_s=2.05)
    node.cri.behaves(stops(0, after_s=0.05), slow, container="hook")


def liveness(node: Node) -> None:
    gone = replies(["cat", "/tmp/ok"], 1, stderr=ABSENT.format("/tmp/ok"), from_s=6.0)
    node.cri.behaves(gone, container="main")


def startup_and_readiness(node: Node) -> None:
    not_ready = ABSENT.format("/tmp/ready")
    node.cri.behaves(
        replies(["cat", "/tmp/started"], 1, stderr=ABSENT.format("/tmp/started"), until_s=4.0),
        replies(["cat", "/tmp/started"], from_s=4.0),
        replies(["cat", "/tmp/ready"], 1, stderr=not_ready, until_s=8.0),
        replies(["cat", "/tmp/ready"], from_s=8.0, until_s=14.0),
        replies(["cat", "/tmp/ready"], 1, stderr=not_ready, from_s=14.0, until_s=18.0),
        replies(["cat", "/tmp/ready"], from_s=18.0),
    )


def short_init(node: Node) -> None:
    node.cri.behaves(exits(0, after_s=0.5), container="i1")


def missing_image(node: Node) -> None:
    refused = (
        'failed to pull and unpack image "localhost/missing:1": failed to resolve reference '
        '"localhost/missing:1": failed to do request: Head '
        '"http://localhost/v2/missing/manifests/1": dial tcp 127.0.0.1:80: connect: connection '
        "refused"
    )
    unparsable = (
        'failed to parse image reference "UPPER/bad:1": invalid reference format: repository name '
        "must be lowercase"
    )
    node.cri.on("PullImage", image="localhost/missing:1").fails("UNKNOWN", refused)
    node.cri.on("PullImage", image="UPPER/bad:1").fails("UNKNOWN", unparsable)
    node.cri.on("ImageStatus", image="UPPER/bad:1").answers(cri.ImageStatusResponse())


def restarted_kubelet(node: Node) -> None:
    short_init(node)
    node.cri.behaves(exits(3, after_s=1), pod="loop*")
    node.cri.behaves(exits(0, after_s=1), pod="done*")


def restarted_runtime(node: Node) -> None:
    node.cri.behaves(exits(3, after_s=2), pod="loop*")


def out_of_memory(node: Node) -> None:
    node.cri.behaves(exits(137, after_s=1.1, reason="OOMKilled"), container="main")
    node.cri.behaves(oom_kills_child(at_s=0.1), ignores("SIGTERM"), container="child")


def failing_post_start(node: Node) -> None:
    broken = ["/bin/sh", "-c", "sleep 1; echo broken; exit 7"]
    node.cri.behaves(replies(broken, 7, "broken\n", delay_s=1.03), container="main")


def deletions(node: Node) -> None:
    node.cri.behaves(stops(0, after_s=2.1), pod="polite")
    for pod in ("stub?", "force"):
        node.cri.behaves(ignores("SIGTERM"), pod=pod)


def _memory(node: Node, available_mib: int) -> None:
    node.cri.node.memory_bytes = 24105 * MIB
    node.cri.node.base_memory_used_bytes = (24105 - available_mib) * MIB


def hard_eviction(node: Node) -> None:
    _memory(node, 21475)
    node.cri.behaves(stops(143), uses(memory_bytes=((12, 700 * MIB),)), pod="bu-over")
    node.cri.behaves(stops(143), uses(memory_bytes=((36, 900 * MIB),)), pod="be-hog")
    # The memory is gone at once; the statistics of the container tell of it later (golden README).
    loop, hog_s = asyncio.get_running_loop(), PREROLL_S + 20.5
    loop.call_later(hog_s, _take, node, 900 * MIB)
    loop.call_later(hog_s + 16, _take, node, -900 * MIB)


def _take(node: Node, more_bytes: int) -> None:
    node.cri.node.base_memory_used_bytes += more_bytes


def soft_eviction(node: Node) -> None:
    _memory(node, 22839)
    node.cri.behaves(ignores("SIGTERM"), uses(memory_bytes=((5, 1200 * MIB),)), pod="be-hog")


def eviction_of_a_polite_pod(node: Node) -> None:
    _memory(node, 21870)
    node.cri.behaves(stops(0), uses(memory_bytes=((5, 1200 * MIB),)), pod="be-hog0")


def deadlines(node: Node) -> None:
    node.cri.behaves(ignores("SIGTERM"), pod="dl")
    node.cri.behaves(exits(3, after_s=1), pod="dlcrash")


def small_node(node: Node) -> None:
    node.cri.node.cpus = 2


def old_runtime(node: Node) -> None:
    """containerd 1.6 does not know that call."""
    node.cri.node.memory_bytes = 24105 * MIB
    unknown = "unknown method UpdatePodSandboxResources for service runtime.v1.RuntimeService"
    node.cri.on("UpdatePodSandboxResources").fails("UNIMPLEMENTED", unknown)


def failing_init(node: Node) -> None:
    node.cri.behaves(exits(4, after_s=1), container="i1")


SCENARIOS: Final = {
    "s01": Scenario(),
    "s02": Scenario(crash_loop),
    "s03": Scenario(crash_loop),
    "s04": Scenario(on_failure),
    "s05": Scenario(never),
    "s06": Scenario(init_containers),
    "s07": Scenario(sidecars),
    "s07/api": Scenario(slower_sidecars),
    "s07b": Scenario(sidecar_of_a_job),
    "s08": Scenario(hook_and_stubborn),
    "s09": Scenario(),
    "s10": Scenario(liveness),
    "s11": Scenario(startup_and_readiness),
    "s12": Scenario(),
    "s13": Scenario(short_init),
    "s14": Scenario(missing_image),
    "s14b": Scenario(missing_image),
    "s15": Scenario(restarted_kubelet),
    "s16": Scenario(restarted_runtime),
    "s17": Scenario(out_of_memory),
    "s18": Scenario(failing_post_start),
    "s19": Scenario(),
    "s20": Scenario(),
    "s21": Scenario(deletions),
    "s22": Scenario(hard_eviction),
    "s22b": Scenario(soft_eviction, (Step(71.42, "all pods deleted (grace 3)"),)),
    "s22c": Scenario(eviction_of_a_polite_pod, (Step(37.55, "all pods deleted (grace 3)"),)),
    "s23": Scenario(deadlines),
    "s24": Scenario(failing_init),
    "s25": Scenario(old_runtime, late_s=0.06),
    "s26": Scenario(small_node),
}


def scenario_of(recording: Recording) -> Scenario:
    """The recording's own, or what both its variants share."""
    return SCENARIOS.get(recording.name) or SCENARIOS[recording.scenario]
