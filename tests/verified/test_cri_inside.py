"""What the processes of a container see and do, on the fake and on a real containerd.

The real image is busybox; the fake's programs answer as it does.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import grpc
import pytest
from contract_runtime import IDLE, Program, Runtime, execute, since_2
from kubecri.v1 import api_pb2 as cri

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]


def as_of_1_6(text: str) -> str:
    """The text without ids; 2.x leaves out the code at its end."""
    text = re.sub(r'"[0-9a-f]{64}"', '"ID"', text)
    return text if text.endswith(": unknown") else f"{text}: unknown"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("nosuch", "executable file not found in $PATH"),
        ("", "executable file not found in $PATH"),
        ("/no/such", "stat /no/such: no such file or directory"),
        ("./such", "stat ./such: no such file or directory"),
        ("/etc/passwd", "permission denied"),
    ],
)
async def test_a_program_that_is_not_there_fails_the_exec_CRI_111(
    runtime: Runtime, program: str, why: str
) -> None:
    _, container = await runtime.running(IDLE)
    request = cri.ExecSyncRequest(container_id=container, cmd=[program])
    code, text = await runtime.refused("ExecSync", request)
    assert (code, as_of_1_6(text)) == (
        "UNKNOWN",
        'failed to exec in container: failed to start exec "ID": OCI runtime exec failed: exec '
        f'failed: unable to start container process: exec: "{program}": {why}: unknown',
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("nosuch", (127, "", "sh: nosuch: not found\n")),
        ("/no/such", (127, "", "sh: /no/such: not found\n")),
        ("echo $((1 + 2 * 3)) | cat; exit 3", (3, "7\n", "")),
        ("i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done", (0, "0\n1\n2\n", "")),
        ('for i in a "b c"; do echo "<$i>"; done', (0, "<a>\n<b c>\n", "")),
        ("if [ -f /nope ]; then echo y; else echo n; fi", (0, "n\n", "")),
        ("case abc in a*) echo yes;; *) echo no; esac", (0, "yes\n", "")),
        ("sleep 0.1 & echo first; wait; echo last", (0, "first\nlast\n", "")),
        ("(sleep 0.1; exit 3) & wait $!; echo $?", (0, "3\n", "")),
        ("false | true; echo $?; true | false; echo $?", (0, "0\n1\n", "")),
        ("seq 5 | head -n 2; yes | head -n 1", (0, "1\n2\ny\n", "")),
        ("X=a.b.c; echo ${X%.*} ${X##*.} ${#X} ${Y:-none}", (0, "a.b c 5 none\n", "")),
        ("x=$(echo hi; exit 3); echo $x $?", (0, "hi 3\n", "")),
        ("f() { echo $1; return 4; }; f x; echo $?", (0, "x\n4\n", "")),
        ("set -e; false || true; echo yes; false; echo no", (1, "yes\n", "")),
        ("trap 'echo bye' EXIT; echo hi", (0, "hi\nbye\n", "")),
        ("{ echo a; echo b >&2; } 2>/dev/null", (0, "a\n", "")),
        ("echo a | while read l; do echo got $l; done", (0, "got a\n", "")),
        ("echo a >/tmp/f; echo b >>/tmp/f; cat /tmp/f; rm /tmp/f; test -e /tmp/f",
         (1, "a\nb\n", "")),
        ("cat /nope", (1, "", "cat: can't open '/nope': No such file or directory\n")),
        ("ls /nope", (1, "", "ls: /nope: No such file or directory\n")),
        ("mkdir /tmp/d; touch /tmp/f /tmp/d/x; ls /tmp/d /no /tmp/f /root; rm -r /tmp/d /tmp/f",
         (0, "/tmp/f\n\n/root:\n\n/tmp/d:\nx\n", "ls: /no: No such file or directory\n")),
        ("rm /nope", (1, "", "rm: can't remove '/nope': No such file or directory\n")),
        ("mkdir /tmp/d; touch /tmp/d/b /tmp/d/a; ls /tmp/d; echo /tmp/d/*; rm -r /tmp/d",
         (0, "a\nb\n/tmp/d/a /tmp/d/b\n", "")),
        ("echo x >/sys/x", (1, "", "sh: can't create /sys/x: Read-only file system\n")),
        ("id; id -G; id -un; whoami",
         (0, "uid=0(root) gid=0(root) groups=0(root)\n0\nroot\nroot\n", "")),
        ("echo $HOME; pwd; cat /etc/group", (0, "/root\n/\nroot:x:0:\nnogroup:x:65534:\n", "")),
        ("kill -9 $$", (137, "", "")),
        ("x=1; cat <<EOF\na $x \"b\" $(echo c)\nEOF\ncat <<-'E'\n\t$x\n\tE\n",
         (0, 'a 1 "b" c\n$x\n', "")),
        ("[[ abc == a* && 1 ]] && echo yes", (0, "yes\n", "")),
        ("timeout 1 sleep 9; echo $?; echo a b | xargs -n 1 echo +",
         (0, "143\n+ a\n+ b\n", "Terminated\n")),
        ("dd if=/dev/zero of=/tmp/z bs=1k count=3 2>/dev/null; stat -c '%s %F' /tmp/z",
         (0, "3072 regular file\n", "")),
        ("seq 3 | sed -n 's/2/<&>/p'; expr 2 + 3; find /etc/passwd -type f",
         (0, "<2>\n5\n/etc/passwd\n", "")),
        ("pidof sleep; pidof nosuch", (1, "1\n", "")),
    ],
)  # fmt: skip
async def test_scripts_do_what_busybox_does(
    runtime: Runtime, script: str, expected: tuple[int, str, str]
) -> None:
    _, container = await runtime.running(IDLE)
    code, out, err = await execute(runtime, container, "sh", "-c", script)
    assert (code, out, err.replace("sh: line 0: ", "sh: ")) == expected


async def test_an_answer_waits_for_what_runs_on_CRI_113(runtime: Runtime) -> None:
    _, container = await runtime.running(IDLE)
    request = cri.ExecSyncRequest(
        container_id=container, cmd=["sh", "-c", "sleep 2 & echo done"], timeout=1
    )
    before = asyncio.get_running_loop().time()
    answer = await runtime.call("ExecSync", request)
    assert (answer.exit_code, answer.stdout) == (0, b"done\n")
    assert asyncio.get_running_loop().time() - before > 1.5


def plays(script: str) -> Program:
    return Program(script, lambda fake: (fake.runs(),))


async def test_a_script_is_the_main_process_CRI_057_CRI_070(runtime: Runtime) -> None:
    script = "for i in 1 2; do echo line $i; done | cat; echo no >&2; exit 5"
    _, container = await runtime.running(plays(script))
    status = await runtime.exited(container)
    assert (status.exit_code, status.reason) == (5, "Error")
    if runtime.fake is None:
        lines = Path(status.log_path).read_text().splitlines()
        seen = [line.split(" ", 1)[1] for line in lines]
    else:
        log = next(c for c in runtime.fake.containers() if c.id == container).log
        seen = [f"{line.stream} F {line.text}" for line in log]
    assert sorted(seen) == ["stderr F no", "stdout F line 1", "stdout F line 2"]


async def test_a_script_traps_its_stop_signal_CRI_060(runtime: Runtime) -> None:
    script = "trap 'exit 5' TERM; echo set; while :; do sleep 0.05; done"
    _, container = await runtime.running(plays(script))
    await asyncio.sleep(0.3)
    await runtime.stop(container, 20)
    assert (await runtime.status(container)).exit_code == 5


async def test_a_script_ignores_its_stop_signal_CRI_060(runtime: Runtime) -> None:
    _, container = await runtime.running(plays("trap '' TERM; echo set; sleep 1000 & wait"))
    await asyncio.sleep(0.3)
    await runtime.stop(container, 1)
    assert (await runtime.status(container)).exit_code == 137


async def test_files_are_those_of_the_container(runtime: Runtime) -> None:
    _, container = await runtime.running(
        plays("touch /tmp/healthy; sleep 0.5; rm /tmp/healthy; sleep 1000")
    )
    await asyncio.sleep(0.2)
    assert await execute(runtime, container, "cat", "/tmp/healthy") == (0, "", "")
    await asyncio.sleep(0.6)
    assert (await execute(runtime, container, "cat", "/tmp/healthy"))[0] == 1


DNS = cri.DNSConfig(servers=["10.0.0.1", "10.0.0.2"], searches=["a.b", "c"], options=["ndots:5"])


async def in_pod(runtime: Runtime, config: cri.PodSandboxConfig, **security: Any) -> str:
    sandbox = await runtime.run_sandbox(config)
    context = cri.LinuxContainerSecurityContext(
        namespace_options=cri.NamespaceOption(pid=cri.CONTAINER), **security
    )
    linux = cri.LinuxContainerConfig(security_context=context)
    container = await runtime.create(sandbox, config, IDLE, linux=linux)
    await runtime.start(container)
    return container


async def test_names_and_sysctls_of_the_pod_are_seen_inside_CRI_045(runtime: Runtime) -> None:
    config = runtime.pod()
    config.dns_config.CopyFrom(DNS)
    config.hostname = "hosty"
    config.linux.sysctls["kernel.shm_rmid_forced"] = "1"
    config.linux.sysctls["net.ipv4.ip_local_port_range"] = "1024 2000"
    container = await in_pod(runtime, config)
    script = "cat /etc/resolv.conf /etc/hostname; hostname; sysctl -n kernel.shm_rmid_forced; "
    script += "cat /proc/sys/net/ipv4/ip_local_port_range"
    assert await execute(runtime, container, "sh", "-c", script) == (
        0,
        "search a.b c\nnameserver 10.0.0.1\nnameserver 10.0.0.2\noptions ndots:5\nhosty\nhosty\n"
        "1\n1024\t2000\n",
        "",
    )


@pytest.mark.parametrize(
    ("security", "told"),
    [
        ({"run_as_user": cri.Int64Value(value=1001), "run_as_group": cri.Int64Value(value=2002),
          "supplemental_groups": [7, 2002, 9]}, "uid=1001 gid=2002 groups=7,9,2002\n2002 7 9\n/\n"),
        ({"run_as_username": "nobody"},
         "uid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)\n65534\n/\n"),
        ({"run_as_user": cri.Int64Value(value=1001)},
         "uid=1001 gid=0(root) groups=0(root)\n0\n/\n"),
        ({"supplemental_groups": [7]}, "uid=0(root) gid=0(root) groups=0(root),7\n0 7\n/root\n"),
    ],
)  # fmt: skip
async def test_users_and_groups_are_seen_inside_CRI_084(
    runtime: Runtime, security: dict[str, Any], told: str
) -> None:
    container = await in_pod(runtime, runtime.pod(), **security)
    script = "id; id -G; echo $HOME"
    assert await execute(runtime, container, "sh", "-c", script) == (0, told, "")


STATUS = "grep -E 'Cap(Bnd|Eff)|Seccomp:' /proc/self/status | cut -f2"


@pytest.mark.parametrize(
    ("security", "told"),
    [
        ({}, "00000000a80425fb\n00000000a80425fb\n0\n"),
        ({"run_as_user": cri.Int64Value(value=7)}, "0000000000000000\n00000000a80425fb\n0\n"),
        ({"capabilities": cri.Capability(drop_capabilities=["ALL"])}, f"{0:016}\n{0:016}\n0\n"),
        ({"capabilities": cri.Capability(add_capabilities=["KILL"], drop_capabilities=["ALL"])},
         "0000000000000020\n0000000000000020\n0\n"),
        ({"capabilities": cri.Capability(drop_capabilities=["CHOWN"])},
         "00000000a80425fa\n00000000a80425fa\n0\n"),
    ],
)  # fmt: skip
async def test_capabilities_and_seccomp_are_seen_inside_CRI_088(
    runtime: Runtime, security: dict[str, Any], told: str
) -> None:
    container = await in_pod(runtime, runtime.pod(), **security)
    assert await execute(runtime, container, "sh", "-c", STATUS) == (0, told, "")


async def test_masked_and_read_only_paths_CRI_088(runtime: Runtime) -> None:
    paths = {"masked_paths": ["/etc/passwd", "/root"], "readonly_paths": ["/tmp"]}
    container = await in_pod(runtime, runtime.pod(), **paths)
    script = "cat /etc/passwd; ls /root; touch /tmp/x"
    assert await execute(runtime, container, "sh", "-c", script) == (
        1, "", "touch: /tmp/x: Read-only file system\n"
    )  # fmt: skip


async def test_a_program_that_takes_too_much_memory_is_killed_CRI_071(runtime: Runtime) -> None:
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    resources = cri.LinuxContainerResources(
        memory_limit_in_bytes=15 << 20, memory_swap_limit_in_bytes=15 << 20
    )
    linux = cri.LinuxContainerConfig(resources=resources)
    program = plays("dd if=/dev/zero of=/dev/null bs=20M")
    container = await runtime.create(sandbox, config, program, linux=linux)
    await runtime.start(container)
    status = await runtime.exited(container)
    assert (status.exit_code, status.reason) == (137, "OOMKilled")


async def test_who_may_write_where(runtime: Runtime) -> None:
    config = runtime.pod()
    user = await in_pod(runtime, config, run_as_user=cri.Int64Value(value=1001))
    script = "touch /tmp/x && touch /x"
    assert await execute(runtime, user, "sh", "-c", script) == (
        1, "", "touch: /x: Permission denied\n"
    )  # fmt: skip
    frozen = await in_pod(runtime, runtime.pod(), readonly_rootfs=True)
    assert await execute(runtime, frozen, "touch", "/tmp/x") == (
        1, "", "touch: /tmp/x: Read-only file system\n"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["kernel.nosuch", "vm.swappiness"])
async def test_sysctls_of_the_whole_machine_fail_the_sandbox_CRI_030(
    runtime: Runtime, name: str
) -> None:
    config = runtime.pod()
    config.linux.sysctls[name] = "1"
    with pytest.raises(grpc.RpcError) as failure:
        await runtime.run_sandbox(config)
    assert failure.value.code() is grpc.StatusCode.UNKNOWN
    assert (
        f'OCI runtime create failed: runc create failed: sysctl "{name}" is not in a separate '
        "kernel namespace"
    ) in failure.value.details()


async def test_stats_of_a_running_container_are_told_CRI_123(runtime: Runtime) -> None:
    _, container = await runtime.running(IDLE)
    stats = (
        await runtime.call("ContainerStats", cri.ContainerStatsRequest(container_id=container))
    ).stats
    assert stats.memory.working_set_bytes.value > 0
    assert stats.memory.usage_bytes.value >= stats.memory.rss_bytes.value > 0
    assert stats.cpu.usage_core_nano_seconds.value > 0


# -- what containerd has since 2.0 ---------------------------------------------------------------


def mapping(host_id: int = 100000, container_id: int = 0, length: int = 65536) -> cri.IDMapping:
    return cri.IDMapping(host_id=host_id, container_id=container_id, length=length)


def users(mode: int = cri.POD, uids: Any = (), gids: Any = ()) -> cri.UserNamespace:
    return cri.UserNamespace(mode=mode, uids=uids, gids=gids)


ONE = [mapping()]
WRONG_USERS = {
    "none": (users(), "required only one uid mapping, but got 0 uid mapping(s)"),
    "two": (users(uids=ONE * 2, gids=ONE * 2), "required only one uid mapping, but got 2"),
    "no gids": (users(uids=ONE), "required only one gid mapping, but got 0 gid mapping(s)"),
    "empty": (
        users(uids=[mapping(length=0)], gids=ONE),
        "failed to start noop process for unshare: fork/exec /proc/self/exe: invalid argument",
    ),
    "too far": (
        users(uids=[mapping(2**32 - 1)], gids=ONE),
        "failed to start noop process for unshare: fork/exec /proc/self/exe: invalid argument",
    ),
    "container": (users(cri.CONTAINER, ONE, ONE), 'unsupported user namespace mode: "CONTAINER"'),
    "target": (users(cri.TARGET), 'unsupported user namespace mode: "TARGET"'),
    "node with mappings": (
        users(cri.NODE, ONE, ONE),
        'user namespace configuration: can\'t use user namespace mode "NODE" with mappings. Got 1 '
        "UID mappings and 1 GID mappings",
    ),
    "without root": (
        users(uids=[mapping(container_id=1)], gids=ONE),
        "runc create failed: user namespaces enabled, but no mapping found for uid 0",
    ),
}


@pytest.mark.parametrize("name", WRONG_USERS)
async def test_wrong_user_namespaces_fail_the_sandbox_CRI_132(runtime: Runtime, name: str) -> None:
    since_2(runtime)
    given, words = WRONG_USERS[name]
    config = runtime.pod()
    config.linux.security_context.namespace_options.userns_options.CopyFrom(given)
    with pytest.raises(grpc.RpcError) as failure:
        await runtime.run_sandbox(config)
    assert failure.value.code() is grpc.StatusCode.UNKNOWN
    assert words in failure.value.details()


async def test_a_container_has_the_user_namespace_of_its_sandbox_CRI_132(runtime: Runtime) -> None:
    since_2(runtime)
    config = runtime.pod()
    config.linux.security_context.namespace_options.userns_options.mode = cri.NODE
    sandbox = await runtime.run_sandbox(config)
    for given, words in (
        (
            users(uids=ONE, gids=ONE),
            "user namespace config for sandbox is different from",
        ),
        (None, "Uids:[]*IDMapping{},Gids:[]*IDMapping{},} - Container userns config: nil"),
        (users(), 'can\'t use user namespace mode "POD" without UID and GID mappings'),
    ):
        linux = cri.LinuxContainerConfig()
        linux.security_context.namespace_options.pid = cri.CONTAINER
        if given is not None:
            linux.security_context.namespace_options.userns_options.CopyFrom(given)
        with pytest.raises(grpc.RpcError) as failure:
            await runtime.create(sandbox, config, IDLE, linux=linux)
        assert words in failure.value.details()
    linux.security_context.namespace_options.userns_options.CopyFrom(users(cri.NODE))
    await runtime.create(sandbox, config, IDLE, linux=linux)
