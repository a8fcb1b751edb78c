"""What outlives a restart of the runtime, the fake or a real containerd."""

from __future__ import annotations

import pytest
from contract_runtime import RUNS, Runtime, execute
from kubecri.v1 import api_pb2 as cri
from test_cri_logs import plays

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


async def restart(runtime: Runtime) -> None:
    if runtime.fake is not None:
        runtime.fake.crash()
        runtime.fake.restart()
    else:
        await runtime.node.restart_containerd()
        await runtime.node.wait_ready()


async def test_a_restart_of_the_runtime_changes_nothing_CRI_160(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    script = "echo a; until [ -e /tmp/go ]; do sleep 0.05; done; echo b; exec sleep 1000"
    running = await runtime.create(sandbox, config, plays(script))
    await runtime.start(running)
    await runtime.until_printed(running)
    created = await runtime.create(sandbox, config, RUNS, attempt=1)
    ended = await runtime.create(sandbox, config, plays("exit 3"), attempt=2)
    await runtime.start(ended)
    exited = await runtime.exited(ended)
    status = await runtime.sandbox_status(sandbox)
    before = await runtime.status(running)
    await restart(runtime)
    assert await runtime.sandbox_status(sandbox) == status
    assert await runtime.status(ended) == exited
    after = await runtime.status(running)
    assert (after.state, after.started_at) == (cri.CONTAINER_RUNNING, before.started_at)
    assert (await execute(runtime, running, "touch", "/tmp/go"))[0] == 0
    lines = await runtime.until_printed(running, 2)
    assert [line.split(" ", 1)[1] for line in lines] == ["stdout F a", "stdout F b"]
    assert (await runtime.status(created)).state == cri.CONTAINER_CREATED
    await runtime.start(created)
    assert (await runtime.status(created)).state == cri.CONTAINER_RUNNING
