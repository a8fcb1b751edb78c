"""Programs about processes, and what the kernel lets them do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import refused, run_exec, started, status

from fakecri import FakeCRI, runs

pytestmark = pytest.mark.virtual_time
OWN = cri.NamespaceOption(pid=cri.CONTAINER)


def context(**fields: Any) -> cri.LinuxContainerConfig:
    security = cri.LinuxContainerSecurityContext(**{"namespace_options": OWN, **fields})
    return cri.LinuxContainerConfig(security_context=security)


async def said(script: str, fake: FakeCRI | None = None, **security: Any) -> str:
    fake = fake or FakeCRI()
    container = await started(fake, command=["sleep", "9"], linux=context(**security))
    answer = await run_exec(fake, container, "sh", "-c", f"exec 2>&1; {script}")
    return f"{answer.exit_code} {answer.stdout.decode()}"


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("pgrep sleep", "0 1\n"),
        ("pgrep -fl '^sleep 9'", "0 1 sleep\n"),
        ("pgrep nosuch; pgrep -x slee", "1 "),
        ("pgrep", "2 pgrep: a pattern is missing\n"),
        ("pidof sleep sh", "0 7 1\n"),
        ("pidof nosuch", "1 "),
        ("ps | head -n 2", "0 PID   USER     TIME  COMMAND\n    1 root      0:00 sleep 9\n"),
        ("cat /proc/1/cmdline", "0 sleep\x009\x00"),
        ("timeout 1 sleep 5", "143 Terminated\n"),
        ("timeout 5s echo hi", "0 hi\n"),
        ("timeout x y", "2 timeout: the fake knows only: timeout SECONDS COMMAND\n"),
        ("echo a b c | xargs -n 2 echo +", "0 + a b\n+ c\n"),
        ("nohup echo hi", "0 hi\n"),
        ("sync", "0 "),
        ("dd if=/dev/zero of=/tmp/x bs=1k count=3; wc -c /tmp/x",
         "0 3+0 records in\n3+0 records out\n3072 bytes copied\n3072 /tmp/x\n"),
        ("echo abc | dd bs=2 2>/dev/null", "0 abc\n"),
        ("dd bs=x", "1 dd: invalid number: x\n"),
        ("dd if=/etc", "1 dd: /etc: Is a directory\n"),
        ("brctl", "2 brctl: the fake knows only: addbr NAME, delbr NAME\n"),
    ],
)  # fmt: skip
async def test_programs(script: str, shown: str) -> None:
    assert await said(script) == shown


async def test_what_a_timed_out_exec_ran_is_gone_CRI_112() -> None:
    fake = FakeCRI()
    container = await started(fake)
    await refused(run_exec(fake, container, "sleep", "4321", timeout_s=1))
    assert (await run_exec(fake, container, "pgrep", "sleep")).exit_code == 1


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["kill", "1"], 5),
        (["kill", "-TERM", "1"], 5),
        (["kill", "-s", "15", "1"], 5),
        (["sh", "-c", "kill -0 1 && kill -9 1 && kill 1"], 5),
        (["kill", "-9", "1"], None),
        (["kill", "-HUP", "1"], None),
    ],
)
async def test_the_main_process_hears_a_signal_that_it_traps_CRI_058(
    command: list[str], code: int | None
) -> None:
    fake = FakeCRI()
    fake.behaves(runs())
    script = "trap 'exit 5' TERM; while true; do sleep 1; done"
    container = await started(fake, command=["sh", "-c", script])
    assert (await run_exec(fake, container, *command)).exit_code == 0
    await asyncio.sleep(2)
    found = fake.containers()[0]
    assert (found.exit_code if found.finished_at_ns else None) == code


async def test_a_process_that_is_not_there_hears_nothing() -> None:
    assert await said("env kill 99") == "1 kill: can't kill pid 99: No such process\n"


async def test_pods_with_one_process_namespace_see_one_another() -> None:
    fake = FakeCRI()
    shared = cri.NamespaceOption(pid=cri.POD)
    container = await started(fake, command=["sleep", "9"], linux=context(namespace_options=shared))
    shown = (await run_exec(fake, container, "sh", "-c", "pgrep .; cat /proc/1/cmdline")).stdout
    main = fake.containers()[0].pid
    assert shown.decode().split("\n")[:2] == ["1", str(main)]
    assert shown.endswith(b"/pause\0")


async def test_a_container_that_is_started_to_debug_another_sees_its_processes() -> None:
    fake = FakeCRI()
    web = await started(fake, "web", command=["sleep", "9"], linux=context())
    target = cri.NamespaceOption(pid=cri.TARGET, target_id=web)
    look = await started(
        fake, "look", command=["sleep", "8"], linux=context(namespace_options=target)
    )
    await started(fake, "other", command=["sleep", "7"], linux=context())
    main = {c.name: c.pid for c in fake.containers()}["look"]
    for container in (web, look):
        shown = await run_exec(fake, container, "sh", "-c", "pgrep sleep; cat /proc/1/cmdline")
        assert shown.stdout.decode().split("\n") == ["1", str(main), "sleep\x009\x00"]


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [("dd if=/dev/zero of=/dev/null bs=20M", 137), ("dd bs=20M; exit 0", 0)],
)
async def test_a_process_that_takes_too_much_memory_is_killed_CRI_071(
    script: str, exit_code: int
) -> None:
    fake = FakeCRI()
    fake.behaves(runs())
    resources = cri.LinuxContainerResources(memory_limit_in_bytes=15 << 20)
    linux = cri.LinuxContainerConfig(resources=resources)
    container = await started(fake, command=["sh", "-c", script], linux=linux)
    await asyncio.sleep(1)
    shown = await status(fake, container)
    assert (shown.exit_code, shown.reason) == (exit_code, "OOMKilled")


@pytest.mark.parametrize(
    ("security", "shown"),
    [
        ({}, ("00000000a80425fb", "00000000a80425fb")),
        ({"run_as_user": cri.Int64Value(value=7)}, ("00000000a80425fb", "0000000000000000")),
        ({"privileged": True}, ("000001ffffffffff", "000001ffffffffff")),
        ({"capabilities": cri.Capability(drop_capabilities=["ALL"])}, ("0" * 16, "0" * 16)),
        ({"capabilities": cri.Capability(add_capabilities=["CHOWN"], drop_capabilities=["ALL"])},
         ("0" * 15 + "1", "0" * 15 + "1")),
        ({"capabilities": cri.Capability(add_capabilities=["ALL"], drop_capabilities=["chown"])},
         ("000001fffffffffe", "000001fffffffffe")),
    ],
)  # fmt: skip
async def test_capabilities_CRI_088(security: dict[str, Any], shown: tuple[str, str]) -> None:
    text = await said("cat /proc/self/status", **security)
    found = dict(line.split(":\t") for line in text[2:].splitlines())
    assert (found["CapBnd"], found["CapEff"]) == shown


@pytest.mark.parametrize(
    ("kind", "privileged", "mode"),
    [(None, False, 0), (0, False, 2), (1, False, 0), (2, False, 2), (0, True, 0)],
)
async def test_seccomp_CRI_088(kind: Any, privileged: bool, mode: int) -> None:
    profile = {} if kind is None else {"seccomp": cri.SecurityProfile(profile_type=kind)}
    text = await said("grep Seccomp: /proc/self/status", privileged=privileged, **profile)
    assert text == f"0 Seccomp:\t{mode}\n"


@pytest.mark.parametrize("host_mounts", [True, False])
async def test_a_profile_on_the_node_refuses_calls_CRI_088(
    tmp_path: Path, host_mounts: bool
) -> None:
    (tmp_path / "p.json").write_text(
        '{"syscalls": [{"names": ["chmod", "sethostname"], "action": "SCMP_ACT_ERRNO"}]}'
    )
    profile = cri.SecurityProfile(
        profile_type=cri.SecurityProfile.Localhost, localhost_ref=str(tmp_path / "p.json")
    )
    more = cri.Capability(add_capabilities=["SYS_ADMIN"])
    fake = FakeCRI(host_mounts=host_mounts)
    text = await said("chmod 400 /; hostname x", fake, seccomp=profile, capabilities=more)
    refusals = "chmod: /: Operation not permitted\nhostname: sethostname: Operation not permitted\n"
    assert text == (f"1 {refusals}" if host_mounts else "0 ")


async def test_names_of_hosts_are_set_with_a_capability_CRI_088() -> None:
    assert (
        await said("hostname x", FakeCRI()) == "1 hostname: sethostname: Operation not permitted\n"
    )
    assert await said("hostname x; hostname", privileged=True) == "0 x\n"


@pytest.mark.parametrize(("privileged", "code"), [(False, 1), (True, 0)])
async def test_networks_are_changed_with_a_capability_CRI_088(privileged: bool, code: int) -> None:
    text = await said("brctl addbr b >/dev/null", privileged=privileged)
    assert text[0] == str(code)


async def test_masked_and_read_only_paths_CRI_088() -> None:
    paths = {"masked_paths": ["/bin/ls", "/etc/passwd", "/root"], "readonly_paths": ["/tmp"]}
    script = "touch /root/x; ls; cat /etc/passwd; touch /tmp/x"
    assert await said(script, **paths) == (
        "1 sh: ls: Permission denied\ntouch: /tmp/x: Read-only file system\n"
    )
    assert (await said("ls -d /root; touch /tmp/x", privileged=True, **paths)) == "0 /root\n"
