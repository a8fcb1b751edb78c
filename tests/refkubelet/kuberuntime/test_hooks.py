"""Lifecycle hooks over a scripted runtime and network: LIFE-142, LIFE-143."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from pods import make_pod
from runtime_doubles import UID, Events, ScriptedTarget, box_status

from refkubelet.cri.client import CriClient
from refkubelet.host.network import HttpAnswer, HttpRequest, NetworkError
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.hooks import HookError, HookRunner
from refkubelet.kuberuntime.kill import ContainerKiller, Kill
from simclock import Ids, Rng

pytestmark = pytest.mark.virtual_time

NO_TLS = "http: server gave HTTP response to HTTPS client"


class FakeNetwork:
    """Answers requests in turn; the last answer for ever."""

    def __init__(self, *answers: HttpAnswer | Exception, takes_s: float = 0.0) -> None:
        self.answers = list(answers) or [HttpAnswer(200)]
        self.requests: list[HttpRequest] = []
        self.takes_s = takes_s

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        assert timeout_s is None
        self.requests.append(request)
        await asyncio.sleep(self.takes_s)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        raise NotImplementedError

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        raise NotImplementedError


class Stage:
    def __init__(self, network: FakeNetwork | None, **answers: Any) -> None:
        loop = virtual_loop()
        labels = {"io.kubernetes.pod.uid": UID, "io.kubernetes.pod.name": "web"}
        listed = cri.PodSandbox(id="box", created_at=1, labels=labels)
        self.target = ScriptedTarget(
            **{"ListPodSandbox": cri.ListPodSandboxResponse(items=[listed]), **answers}
        )
        self.events = Events()
        self.clock = loop.clock
        deps = RuntimeDeps(loop.clock, Ids(Rng(0)), self.events, network=network)
        client = CriClient(self.target)
        self.hooks = HookRunner(client, deps)
        self.killer = ContainerKiller(client, deps)

    async def run(self, handler: dict[str, Any], **container: Any) -> None:
        pod = make_pod({"name": "main", "lifecycle": {"preStop": handler}, **container})
        main = pod.spec.containers[0]
        assert main.lifecycle is not None
        assert main.lifecycle.preStop is not None
        await self.hooks.run("c1", pod, main, main.lifecycle.preStop)


async def test_http_goes_to_the_pods_address_and_named_port_LIFE_142() -> None:
    network = FakeNetwork()
    stage = Stage(network)
    action = {
        "port": "admin",
        "path": "/down?now=1",
        "httpHeaders": [{"name": "X-Why", "value": "stop"}],
    }
    await stage.run({"httpGet": action}, ports=[{"name": "admin", "containerPort": 8080}])
    request = network.requests[0]
    assert request.url == "http://10.0.0.1:8080/down?now=1"
    assert ("User-Agent", "kube-lifecycle/1.36") in request.headers
    assert ("X-Why", "stop") in request.headers


async def test_a_host_of_its_own_needs_no_runtime_LIFE_142() -> None:
    network = FakeNetwork()
    stage = Stage(network)
    await stage.run({"httpGet": {"port": 1, "host": "192.0.2.7"}})
    assert network.requests[0].url == "http://192.0.2.7:1/"
    assert stage.target.methods() == []


async def test_any_answer_is_a_success_LIFE_142() -> None:
    network = FakeNetwork(HttpAnswer(500))
    await Stage(network).run({"httpGet": {"port": 1}})
    assert [request.url for request in network.requests] == ["http://10.0.0.1:1/"]


async def test_a_hook_that_is_not_answered_fails_LIFE_142() -> None:
    with pytest.raises(HookError) as caught:
        await Stage(FakeNetwork(NetworkError("refused"))).run(
            {"httpGet": {"port": 1, "path": "/p"}}
        )
    assert str(caught.value) == (
        'HTTP lifecycle hook (/p) for Container "main" in Pod "web_default(uid-web)" failed'
        ' - error: Get "http://10.0.0.1:1/p": refused'
    )


@pytest.mark.parametrize(
    ("handler", "network", "text"),
    [
        ({"httpGet": {"port": "nobody"}}, FakeNetwork(), 'parsing "nobody": invalid syntax'),
        ({"httpGet": {"port": 1}}, None, "no network to call out to"),
        ({"tcpSocket": {"port": 1}}, FakeNetwork(), "Cannot run handler: invalid handler"),
        ({}, FakeNetwork(), "Cannot run handler: invalid handler"),
    ],
)
async def test_handlers_that_cannot_run_LIFE_142(
    handler: dict[str, Any], network: FakeNetwork | None, text: str
) -> None:
    with pytest.raises(HookError, match=text):
        await Stage(network).run(handler)


async def test_a_pod_without_an_address_cannot_be_asked_LIFE_142() -> None:
    lost = cri.PodSandboxStatusResponse(status=box_status("box", ip=""))
    with pytest.raises(HookError, match="failed to find networking container"):
        await Stage(FakeNetwork(), PodSandboxStatus=lost).run({"httpGet": {"port": 1}})
    none = cri.ListPodSandboxResponse()
    with pytest.raises(HookError, match="failed to find networking container"):
        await Stage(FakeNetwork(), ListPodSandbox=none).run({"httpGet": {"port": 1}})


async def test_https_falls_back_to_http_without_credentials_LIFE_142() -> None:
    network = FakeNetwork(NetworkError(NO_TLS), HttpAnswer(200))
    stage = Stage(network)
    headers = [{"name": "Authorization", "value": "secret"}]
    await stage.run({"httpGet": {"port": 8443, "scheme": "HTTPS", "httpHeaders": headers}})
    first, second = network.requests
    assert (first.url, second.url) == ("https://10.0.0.1:8443/", "http://10.0.0.1:8443/")
    assert "Authorization" in dict(first.headers)
    assert "Authorization" not in dict(second.headers)
    assert stage.events.seen == []


async def test_other_tls_failures_do_not_fall_back_LIFE_142() -> None:
    network = FakeNetwork(NetworkError("tls: bad certificate"))
    with pytest.raises(HookError, match="bad certificate"):
        await Stage(network).run({"httpGet": {"port": 1, "scheme": "HTTPS"}})
    assert len(network.requests) == 1


async def test_sleep_takes_its_seconds_and_none_for_zero_LIFE_143() -> None:
    stage = Stage(None)
    for seconds, at_s in ((3, 3.0), (0, 3.0)):
        await stage.run({"sleep": {"seconds": seconds}})
        assert asyncio.get_running_loop().time() == at_s


async def test_a_slow_http_pre_stop_hook_uses_up_the_grace_LIFE_143() -> None:
    stage = Stage(FakeNetwork(takes_s=60))
    main = {"name": "main", "lifecycle": {"preStop": {"httpGet": {"port": 1}}}}
    await stage.killer.kill(make_pod(main, terminationGracePeriodSeconds=5), Kill("c1", "main"))
    assert asyncio.get_running_loop().time() == 5.0
    assert [r.timeout for r in stage.target.requests("StopContainer")] == [2]


async def test_a_hook_that_outlasts_the_grace_goes_on_LIFE_143() -> None:
    network = FakeNetwork(NetworkError("gone"), takes_s=60)
    stage = Stage(network)
    main = {"name": "main", "lifecycle": {"preStop": {"httpGet": {"port": 1, "host": "h"}}}}
    await stage.killer.kill(make_pod(main, terminationGracePeriodSeconds=5), Kill("c1", "main"))
    assert "FailedPreStopHook" not in stage.events.reasons()
    await asyncio.sleep(56)  # its request was not given up: 60 s after the start it fails
    assert "FailedPreStopHook" in stage.events.reasons()


async def test_late_hooks_end_with_the_kubelet() -> None:
    stage = Stage(FakeNetwork(takes_s=600))
    main = {"name": "main", "lifecycle": {"preStop": {"httpGet": {"port": 1, "host": "h"}}}}
    await stage.killer.kill(make_pod(main, terminationGracePeriodSeconds=5), Kill("c1", "main"))
    await stage.killer.stop()
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("odd"), UnicodeError("odd")])
async def test_whatever_goes_wrong_with_a_hook_is_a_failed_hook_LIFE_143(error: Exception) -> None:
    stage = Stage(FakeNetwork(error))
    main = {"name": "main", "lifecycle": {"preStop": {"httpGet": {"port": 1, "host": "h"}}}}
    await stage.killer.kill(make_pod(main), Kill("c1", "main"))
    assert "FailedPreStopHook" in stage.events.reasons()
    assert len(stage.target.requests("StopContainer")) == 1


@pytest.mark.parametrize("host", ["127.0.0.1:99", "a..b", "a b", "[", "x" * 64])
async def test_an_odd_host_is_a_failed_hook_LIFE_142(host: str) -> None:
    stage = Stage(FakeNetwork())
    with pytest.raises(HookError, match=r"^HTTP lifecycle hook"):
        await stage.run({"httpGet": {"port": 1, "host": host}})
