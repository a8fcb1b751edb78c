"""Exec, attach, port-forward, run and checkpoint, up to the runtime's answer."""

from collections.abc import Mapping

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.kubelets.base import HttpAnswer
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, FAULTS = Feature.STATUS, Feature.FAULTS
NOWHERE = "http://127.0.0.1:9/nowhere"
WEBSOCKET: Mapping[str, str] = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
}


async def web(node: Node) -> str:
    """A pod runs; `default/NAME`."""
    await node.apply_static(pod("web", container("main"), container("shown", tty=True, stdin=True)))
    await node.wait_running("web", "main", "shown")
    return f"default/{node.runtime.pod_name('web')}"


def same(node: Node, answer: HttpAnswer, status: int, text: str, what: str) -> None:
    expect_equal(node, (answer.status, answer.text), (status, text), what)


@conformance(id="exec-call", rules=["SRV-025.1", "SRV-025.4"], needs=[STATUS, FAULTS])
async def the_runtime_is_told_what_to_run(node: Node) -> None:
    """Exec carries command and streams; without an upgrade the answer is 500."""
    place = await web(node)
    node.runtime.on("Exec").answers(cri.ExecResponse(url=NOWHERE))
    path = f"/exec/{place}/main?command=ls&command=-l&command=a%20b&output=1&input=1&error=0"
    answer = await node.kubelet.http(method="POST", path=path)
    same(node, answer, 500, "Upgrade request required\n", "the answer")
    call = node.calls("Exec")[-1].request
    expect_equal(node, list(call.cmd), ["ls", "-l", "a b"], "command")
    streams = (call.stdin, call.stdout, call.stderr, call.tty)
    expect_equal(node, streams, (True, True, False, False), "stdin, stdout, stderr, tty")


@conformance(id="exec-tty", rules=["SRV-025.2"], needs=[STATUS, FAULTS])
async def a_terminal_has_no_stderr(node: Node) -> None:
    """With tty=1 the runtime is not asked for stderr."""
    place = await web(node)
    node.runtime.on("Exec").answers(cri.ExecResponse(url=NOWHERE))
    await node.kubelet.get(f"/exec/{place}/main?command=sh&output=1&error=1&tty=1")
    call = node.calls("Exec")[-1].request
    expect_equal(node, (call.stdout, call.stderr, call.tty), (True, False, True), "streams")


@conformance(id="exec-refused", rules=["SRV-025.2", "SRV-025.3"], needs=[STATUS])
async def what_cannot_be_run_is_told(node: Node) -> None:
    """No stream is 400, an unknown pod 404, an unknown container 500."""
    place = await web(node)
    none = "you must specify at least 1 of stdin, stdout, stderr"
    for verb in ("exec", "attach"):
        answer = await node.kubelet.get(f"/{verb}/default/nobody/main?command=ls&output=true")
        same(node, answer, 400, none, f"{verb} without a stream")
        answer = await node.kubelet.get(f"/{verb}/default/nobody/main?command=ls&output=1")
        same(node, answer, 404, "pod does not exist", f"{verb} in an unknown pod")
    answer = await node.kubelet.get(f"/exec/{place}/other?command=ls&output=1")
    same(node, answer, 500, 'container not found ("other")', "exec in an unknown container")
    answer = await node.kubelet.get(f"/attach/{place}/other?output=1")
    expect_equal(node, answer.status, 500, "status of attach to an unknown container")
    expect(node, "container other not found in pod" in answer.text, "attach", answer.text)


@conformance(id="exec-runtime-refuses", rules=["SRV-025.6"], needs=[STATUS, FAULTS])
async def errors_of_the_runtime_have_their_status(node: Node) -> None:
    """NotFound is 404, ResourceExhausted 429 with Retry-After, everything else 500."""
    path = f"/exec/{await web(node)}/main?command=ls&output=1"
    for code, status in (("NOT_FOUND", 404), ("RESOURCE_EXHAUSTED", 429), ("INTERNAL", 500)):
        with node.runtime.on("Exec").fails(code, "not so"):
            answer = await node.kubelet.get(path)
        expect_equal(node, answer.status, status, f"status of {code}")
        expect(node, "not so" in answer.text, "the runtime's words", answer.text)
        if status == 429:
            expect_equal(node, answer.headers.get("retry-after"), "60", "Retry-After")


@conformance(id="attach-call", rules=["SRV-025.1"], needs=[STATUS, FAULTS])
async def attaching_has_the_terminal_of_the_spec(node: Node) -> None:
    """Attach has the terminal that the container has, whatever the client asks for."""
    place = await web(node)
    node.runtime.on("Attach").answers(cri.AttachResponse(url=NOWHERE))
    for name, tty in (("main", False), ("shown", True)):
        for tty_asked in ("0", "1"):
            await node.kubelet.get(f"/attach/{place}/{name}?input=1&output=1&tty={tty_asked}")
            call = node.calls("Attach")[-1].request
            expect_equal(node, call.tty, tty, f"tty of {name}, tty={tty_asked}")


@conformance(id="port-forward-call", rules=["SRV-026.2", "SRV-026.3"], needs=[STATUS, FAULTS])
async def ports_of_a_websocket_are_in_its_query(node: Node) -> None:
    """A WebSocket names its ports in the query, one by one or with commas."""
    path = f"/portForward/{await web(node)}"
    node.runtime.on("PortForward").fails("UNKNOWN", "not today")
    answer = await node.kubelet.get(f"{path}?port=80&port=81,82", headers=WEBSOCKET)
    expect_equal(node, answer.status, 500, "status")
    ports = list(node.calls("PortForward")[-1].request.port)
    expect_equal(node, ports, [80, 81, 82], "ports")
    for query, words in (
        ("", 'query parameter "port" is required'),
        ("?port=", 'query parameter "port" cannot be empty'),
        ("?port=0", 'port "0" must be > 0'),
    ):
        answer = await node.kubelet.get(f"{path}{query}", headers=WEBSOCKET)
        same(node, answer, 400, words, f"ports {query!r}")
    answer = await node.kubelet.get(f"{path}?port=x", headers=WEBSOCKET)
    expect_equal(node, answer.status, 400, "status of port=x")
    answer = await node.kubelet.get(f"{path}/another-uid")
    same(node, answer, 404, "pod not found", "another UID")
    answer = await node.kubelet.get("/portForward/default/nobody")
    same(node, answer, 404, "pod does not exist", "an unknown pod")
    expect_equal(node, node.count("PortForward"), 1, "calls")


@conformance(id="run-call", rules=["SRV-010.1"], needs=[STATUS, FAULTS])
async def a_command_can_be_run_to_its_end(node: Node) -> None:
    """/run cuts its command at blanks and answers with what it wrote."""
    path = f"/run/{await web(node)}/main"
    answers = cri.ExecSyncResponse(stdout=b"out\n", stderr=b"err\n")
    with node.runtime.on("ExecSync").answers(answers):
        answer = await node.kubelet.http(method="POST", path=f"{path}?cmd=ls%20-l")
        same(node, answer, 200, "out\nerr\n", "the output")
    expect_equal(node, list(node.calls("ExecSync")[-1].request.cmd), ["ls", "-l"], "command")
    failed = cri.ExecSyncResponse(stderr=b"no such file", exit_code=2)
    with node.runtime.on("ExecSync").answers(failed):
        answer = await node.kubelet.http(method="POST", path=f"{path}?cmd=ls")
    expect_equal(node, answer.status, 500, "status of a command that fails")
    expect(node, "exited with 2: no such file" in answer.text, "its words", answer.text)


@conformance(
    id="checkpoint-call", rules=["CRI-006.4", "SRV-010.1"], needs=[STATUS, FAULTS], alone=True
)
async def a_checkpoint_is_written_where_the_kubelet_says(node: Node) -> None:
    """The runtime writes the checkpoint to a file that the answer names, within the time of the
    request or of every call, whichever is longer."""
    place = await web(node)
    path = f"/checkpoint/{place}/main"
    with node.runtime.on("CheckpointContainer").answers(cri.CheckpointContainerResponse()):
        answer = await node.kubelet.http(method="POST", path=f"{path}?timeout=300")
    expect_equal(node, answer.status, 200, "status")
    call = node.calls("CheckpointContainer")[-1]
    expect_equal(node, answer.json(), {"items": [call.request.location]}, "the answer")
    name = node.runtime.pod_name("web")
    file = call.request.location.rsplit("/", 1)[-1]
    expect(node, file.startswith(f"checkpoint-{name}_default-main-"), "its name", file)
    expect(node, file.endswith(".tar"), "its end", file)
    expect_equal(node, call.request.timeout, 300, "timeout")
    expect(node, 299 <= call.deadline_s <= 303, "deadline: 300 s", call.deadline_s)
    with node.runtime.on("CheckpointContainer").answers(cri.CheckpointContainerResponse()):
        await node.kubelet.http(method="POST", path=f"{path}?timeout=5")
    deadline_s = node.calls("CheckpointContainer")[-1].deadline_s
    expect(node, 119 <= deadline_s <= 122, "deadline for 5 s: 120 s", deadline_s)
    answer = await node.kubelet.http(method="POST", path=f"/checkpoint/{place}/other")
    same(node, answer, 404, "container other does not exist", "an unknown container")
    answer = await node.kubelet.http(method="POST", path="/checkpoint/default/nobody/main")
    same(node, answer, 404, "pod does not exist", "an unknown pod")
    answer = await node.kubelet.http(method="POST", path=f"{path}?timeout=soon")
    same(node, answer, 404, "cannot parse value of timeout parameter", "timeout=soon")
    with node.runtime.on("CheckpointContainer").fails("UNIMPLEMENTED", "not here"):
        answer = await node.kubelet.http(method="POST", path=path)
    expect_equal(node, answer.status, 500, "status when the runtime cannot")
    expect(
        node,
        answer.text.startswith(f"checkpointing of {place}/main failed ("),
        "the words of a failure",
        answer.text,
    )
