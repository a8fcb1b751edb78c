"""Programs that look at the network: they reach what containers of the fake serve."""

from __future__ import annotations

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import create, pod_config, run_exec, run_pod, sandbox_status, start

from fakecri import FakeCRI, serves

pytestmark = pytest.mark.virtual_time


async def pods(fake: FakeCRI) -> tuple[str, str]:
    """A pod that serves, and one that asks: the first one's address, the other one's container."""
    fake.behaves(
        serves(80, body="fine\n"),
        serves(80, path="/moved", status=302, location="/"),
        serves(80, path="/gone", status=404),
        serves(81, "tcp"),
        container="web",
    )
    shop, ask = pod_config("shop"), pod_config("ask", hostname="ask")
    sandbox = await run_pod(fake, shop)
    await start(fake, await create(fake, sandbox, shop, "web"))
    asking = await create(fake, await run_pod(fake, ask), ask, "c")
    await start(fake, asking)
    return str((await sandbox_status(fake, sandbox)).network.ip), asking


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("wget -qO- {ip}", "0 fine\n"),
        ("wget -q -O - -T 5 http://{ip}:80/moved", "0 fine\n"),
        ("wget -q {ip}/moved; cat moved", "0 fine\n"),
        ("wget -q --spider --timeout=3 {ip}", "0 "),
        ("wget -O /x {ip}; cat /x", "0 Connecting to {ip} ({ip}:80)\nfine\n"),
        ("wget -qO- {ip}/gone", "1 wget: server returned error: HTTP/1.1 404 Not Found\n"),
        ("wget -qO- {ip}:9", "1 wget: can't connect to remote host ({ip}): Connection refused\n"),
        ("wget -qO- {ip}:81", "1 wget: error getting response\n"),
        ("wget -qO- http://shop", "1 wget: bad address 'shop'\n"),
        ("wget -q localhost", "1 wget: can't connect to remote host (10.88.0.3): "
         "Connection refused\n"),
        ("nc -z -w 2 {ip} 81", "0 "),
        ("nc -zv {ip} 82", "1 nc: {ip} ({ip}:82): Connection refused\n"),
        ("ping -c 1 -w5 {ip} | head -n 2",
         "0 PING {ip} ({ip}): 56 data bytes\n64 bytes from {ip}: seq=0 ttl=64 time=0.050 ms\n"),
        ("ping -c 2 10.9.9.9 | tail -n 1",
         "0 2 packets transmitted, 0 packets received, 100% packet loss\n"),
        ("nslookup ask | tail -n +4", "0 Name:\task\nAddress: 10.88.0.3\n\n"),
        ("nslookup kubernetes.default | tail -n +4",
         "0 ** server can't find kubernetes.default: NXDOMAIN\n\n"),
    ],
)  # fmt: skip
async def test_what_a_pod_reaches_CRI_047(script: str, said: str) -> None:
    fake = FakeCRI()
    ip, asking = await pods(fake)
    answer = await run_exec(fake, asking, "sh", "-c", f"exec 2>&1; {script.format(ip=ip)}")
    assert f"{answer.exit_code} {answer.stdout.decode()}" == said.format(ip=ip)


async def test_netstat_tells_the_ports_of_the_own_pod() -> None:
    fake = FakeCRI()
    fake.behaves(serves(8080))
    _, asking = await pods(fake)
    rows = (await run_exec(fake, asking, "netstat", "-ln")).stdout.decode().splitlines()[2:]
    assert [row.split()[3] for row in rows] == ["0.0.0.0:8080"]


async def test_ping_needs_a_capability_CRI_088() -> None:
    fake = FakeCRI()
    config = pod_config("own")
    without = cri.Capability(drop_capabilities=["NET_RAW"])
    context = cri.LinuxContainerSecurityContext(capabilities=without)
    linux = cri.LinuxContainerConfig(security_context=context)
    sandbox = await run_pod(fake, config)
    container = await create(fake, sandbox, config, "c", linux=linux)
    await start(fake, container)
    answer = await run_exec(fake, container, "ping", "127.0.0.1")
    assert (answer.exit_code, answer.stderr) == (1, b"ping: permission denied (are you root?)\n")
    assert answer.stdout.startswith(b"PING 127.0.0.1")
