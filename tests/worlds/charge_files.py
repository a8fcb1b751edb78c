"""What the fake's containers use and how they ended."""

from __future__ import annotations

from typing import Any

import pytest
from cgroup_pods import Pods
from kubecri.v1 import api_pb2 as pb

from fakecri.core.objects import State

VERSIONS = pytest.mark.parametrize("version", [1, 2])


async def stats(pods: Pods) -> list[Any]:
    answer: Any = await pods.cri.call("ListContainerStats", pb.ListContainerStatsRequest())
    return list(answer.stats)


def fate(pods: Pods, name: str = "main") -> tuple[State, int, str]:
    found = pods.cri.container(name)
    return found.state, found.exit_code, found.reason


OOM_KILLED = (State.EXITED, 137, "OOMKilled")


RUNNING = (State.RUNNING, 0, "")
