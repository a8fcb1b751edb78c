"""`refkubelet run` as a process on a fake runtime: bad input beside good, a port that is taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from process_world import POD, free_port, kubelet, running, until_runs, write_config

from fakecri import FakeCRI
from fakecri.machine.node import FakeNode
from fakecri.server import serve

SECOND_KIND = "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: twice}\n"


async def test_bad_manifests_are_named_and_the_good_ones_run_SRC_005(tmp_path: Path) -> None:
    config = write_config(tmp_path, healthz_port=0)
    manifests = tmp_path / "manifests"
    (manifests / "a-binary.yaml").write_bytes(b"#!\n\x7fELF\x00\x01")
    (manifests / "b-good.yaml").write_text(POD.format(name="good"))
    (manifests / "c-twice.yaml").write_text(SECOND_KIND)
    (manifests / "d-dangling.yaml").symlink_to("/nowhere/pod.yaml")
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint) as process,
    ):
        lines = [await process.line(lambda line: "static pod file" in line) for _ in range(3)]
        await until_runs(cri, "good-n1")
        process.stop()
        code, rest = await process.end()
    texts = [line.partition("static pod file ")[2].replace(str(manifests), "DIR") for line in lines]
    assert texts == [
        "DIR/a-binary.yaml: line 2: the control character 0x7f is no text",
        "DIR/c-twice.yaml: line 3: duplicate key 'kind', first on line 2",
        "DIR/d-dangling.yaml: no such file or directory",
    ]
    assert "Traceback" not in rest
    assert code == 0
    assert running(cri) == ["good-n1"]  # the kubelet has stopped, its pod has not


async def test_a_second_kubelet_on_a_used_port_leaves_the_first_alone(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(tmp_path, healthz_port=port)
    (tmp_path / "manifests" / "pod.yaml").write_text(POD.format(name="first"))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint),
    ):
        await until_runs(cri, "first-n1")
        async with kubelet(config, server.endpoint) as second:
            code, text = await second.end()
        assert (code, text) == (
            2,
            f"refkubelet: healthzPort: cannot listen on 127.0.0.1:{port}: the address is in use, "
            "perhaps by another kubelet; stop it or set another healthzPort",
        )
        assert cri.count("RunPodSandbox") == 1


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ("cgroupsPerQOS: true\ncgroupRoot: /nowhere\n", "cgroup"),
        (
            'cgroupsPerQOS: false\nkubeReserved: {cpu: "99999"}\n',
            'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 99999',
        ),
    ],
)
async def test_a_machine_that_does_not_fit_is_one_clear_error_CG_015_CG_034(
    tmp_path: Path, fields: str, wanted: str
) -> None:
    config = write_config(tmp_path, healthz_port=0)
    config.write_text(config.read_text().replace("cgroupsPerQOS: false\n", fields))
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with (
        serve(cri, f"unix://{tmp_path}/cri.sock") as server,
        kubelet(config, server.endpoint) as process,
    ):
        code, rest = await process.end()
    assert code == 2
    assert "Traceback" not in rest
    assert wanted in rest.splitlines()[-1]
    assert cri.count("RunPodSandbox") == 0
