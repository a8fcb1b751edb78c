"""OOM kills of the whole machine: which lines tell of one, and the event of the node."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import container, make_pod

from fakecri import FakeCRI
from fakecri.machine.node import FakeNode
from refkubelet.config import ConfigError
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.start_checks import check_host
from refkubelet.kuberuntime.config.linux_resources import container_resources, oom_score_adj
from refkubelet.kuberuntime.options_from_config import Surroundings, runtime_options
from refkubelet.node.oom_parse import BETWEEN, OomKill, read
from refkubelet.node.oom_watcher import OomWatcher, follow_kernel_log

pytestmark = pytest.mark.virtual_time

BEGIN = (
    "stress invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0"
)
NOISE = ["CPU: 1 PID: 71 Comm: stress Not tainted", "Call Trace:", "Tasks state (memory values):"]
HERE = "mems_allowed=0"
GLOBAL = [
    BEGIN,
    *NOISE,
    f"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,{HERE},global_oom,"
    "task_memcg=/kubepods/pod1/a,task=stress,pid=71,uid=0",
    "Out of memory: Killed process 71 (stress) total-vm:900kB, anon-rss:800kB, UID:0 pgtables:1kB",
]
AT_LIMIT = [
    "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999",
    *NOISE,
    f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,{HERE},"
    "oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/a,task=python3,pid=72,uid=1000",
    "Memory cgroup out of memory: Killed process 72 (python3) total-vm:9kB, anon-rss:8kB",
]
AT_OLD_LIMIT = [
    "java invoked oom-killer: gfp_mask=0xd0, order=0, oom_adj=0, oom_score_adj=0",
    "Task in /docker/a killed as a result of limit of /docker",
    "Memory cgroup out of memory: Kill process 13536 (java) score 1001 or sacrifice child",
    "Killed process 13536 (java) total-vm:9kB, anon-rss:8kB, file-rss:0kB",
]
OLD = [
    "ruby invoked oom-killer: gfp_mask=0x201da, order=0, oom_score_adj=0",
    "Out of memory: Kill process 19667 (evil-program2) score 871 or sacrifice child",
    "Killed process 19667 (evil-program2) total-vm:8kB, anon-rss:7kB",
]
SYSTEM = "System OOM encountered, victim process: {}, pid: {}"


def kills(lines: list[str]) -> list[OomKill]:
    found, reading = [], BETWEEN
    for line in lines:
        reading, kill = read(reading, line)
        if kill is not None:
            found.append(kill)
    return found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (GLOBAL, [OomKill("/", "stress", 71)]),
        (AT_LIMIT, [OomKill("/kubepods/pod1", "python3", 72)]),
        (AT_OLD_LIMIT, [OomKill("/docker", "java", 13536)]),
        (OLD, [OomKill("/", "evil-program2", 19667)]),
        (GLOBAL[1:], []),
        (
            [*AT_LIMIT, *GLOBAL],
            [OomKill("/kubepods/pod1", "python3", 72), OomKill("/", "stress", 71)],
        ),
        (
            [*AT_OLD_LIMIT, *OLD],
            [OomKill("/docker", "java", 13536), OomKill("/", "evil-program2", 19667)],
        ),
    ],
)
def test_kills_in_the_kernels_log_EVIC_124(lines: list[str], found: list[OomKill]) -> None:
    assert kills(lines) == found


@given(st.lists(st.text(max_size=40), max_size=5), st.sampled_from([GLOBAL, OLD]))
def test_lines_of_others_between_change_nothing_EVIC_124(
    others: list[str], kill: list[str]
) -> None:
    mixed = [kill[0], *others, *kill[1:]]
    assert kills(mixed)[-1:] == kills(kill)


class Events:
    """Keeps the events of the node; refuses those of pods."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def node_event(self, type_: str, reason: str, message: str) -> None:
        self.seen.append((type_, reason, message))

    def pod_event(self, *_: Any, **__: Any) -> None:
        raise AssertionError("an OOM of the system is no pod's event")


async def in_watch(lines: list[str]) -> list[tuple[str, str, str]]:
    """Events of a watcher that was there when the kernel said these lines."""
    node: Any = FakeNode()
    node.kernel_says(BEGIN)  # before the watcher listens
    messages = follow_kernel_log(node, may_fail=False)
    assert messages is not None
    events = Events()
    watching = asyncio.create_task(OomWatcher(messages, events).run())
    for line in lines:
        node.kernel_says(line)
    await asyncio.sleep(0.1)
    assert not watching.done()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return events.seen


async def test_a_global_oom_is_an_event_of_the_node_EVIC_124() -> None:
    assert await in_watch(GLOBAL) == [("Warning", "SystemOOM", SYSTEM.format("stress", 71))]


async def test_an_oom_at_a_limit_is_no_event_EVIC_124() -> None:
    assert await in_watch([*AT_LIMIT, *AT_OLD_LIMIT]) == []


def test_a_kernel_log_that_cannot_be_read_ends_the_start_EVIC_124() -> None:
    node: Any = FakeNode()
    node.log.error = PermissionError(errno.EPERM, "Operation not permitted")
    with pytest.raises(ConfigError, match=r"^/dev/kmsg: .*not permitted; .*KubeletInUserNamesp"):
        follow_kernel_log(node, may_fail=False)
    assert follow_kernel_log(node, may_fail=True) is None


class Host:
    """A machine without swap. `version`: of its cgroups."""

    def __init__(self, version: int) -> None:
        self._version = version

    def cgroup_version(self) -> int:
        return self._version

    def swap_is_on(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("single", "version", "refused"),
    [(False, 1, True), (True, 1, False), (None, 1, False), (False, 2, False), (True, 2, False)],
)
def test_whole_groups_die_on_v2_only_EVIC_122(
    single: bool | None, version: int, refused: bool
) -> None:
    config = KubeletConfiguration(single_process_oom_kill=single, fail_cgroup_v1=False)
    host: Any = Host(version)
    if not refused:
        check_host(config, host)
        return
    with pytest.raises(ConfigError, match="must not be explicitly set to false"):
        check_host(config, host)


@pytest.mark.parametrize(
    ("version", "single", "group"),
    [(2, None, "1"), (2, False, "1"), (2, True, None), (1, None, None), (1, True, None)],
)
def test_what_the_runtime_is_told_of_whole_groups_EVIC_122(
    version: int, single: bool | None, group: str | None
) -> None:
    options = runtime_options(
        KubeletConfiguration(single_process_oom_kill=single, resolv_conf=""),
        FakeNode(memory_bytes=8 * 10**9, cgroups_version=2 if version == 2 else 1),
        Surroundings(Path("/k")),
    )
    pod = make_pod()
    made = container_resources(pod.spec.containers[0], pod, options.resources)
    assert made.unified.get("memory.oom.group") == group


@pytest.mark.parametrize(
    ("resources", "score"),
    [
        ({"requests": {"memory": "4G"}}, 500),
        ({"requests": {"memory": "1G"}}, 875),
        ({"requests": {"cpu": "1"}}, 999),
        ({"requests": {"memory": "1"}}, 999),
        ({"requests": {"memory": "8G"}}, 3),
        ({"requests": {"memory": "7980M"}}, 3),
        ({}, 1000),
    ],
)
def test_examples_of_scores_on_8_GB_EVIC_121(resources: dict[str, Any], score: int) -> None:
    pod = make_pod(container(resources=resources))
    assert oom_score_adj(pod.spec.containers[0], pod, 8 * 10**9) == score


async def test_the_fake_kernel_speaks_as_the_real_one_EVIC_124() -> None:
    fake = FakeCRI()
    fake.oom(process="java", pid=4711)
    assert kills(fake.node.log.texts) == [OomKill("/", "java", 4711)]
