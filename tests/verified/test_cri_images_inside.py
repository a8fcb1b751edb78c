"""What containers see of images: volumes of them, and the groups that an image gives its user.

On the fake and on a real containerd.
"""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from contract_runtime import APP_IMAGE, IDLE, Runtime, execute, since_2
from kubecri.v1 import api_pb2 as cri

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

IMAGE = cri.ImageSpec(image="localhost/busybox:1")


def volume(**fields: Any) -> cri.Mount:
    given = {"container_path": "/v", "image": IMAGE, "readonly": True} | fields
    return cri.Mount(**given)


@pytest.mark.parametrize(
    ("mount", "code", "words"),
    [
        (volume(readonly=False), "UNKNOWN",
         "failed to mount image volume: readonly must be true while mount image: &Mount{Cont"),
        (volume(host_path="/tmp"), "UNKNOWN",
         "failed to mount image volume: hostpath must be empty while mount image: &Mount{Cont"),
        (volume(image=cri.ImageSpec(image="localhost/no:1")), "NOT_FOUND",
         'failed to mount image volume: failed to resolve image "localhost/no:1": not found'),
        (volume(image=cri.ImageSpec()), "UNKNOWN",
         "failed to mount image volume: image not specified in: &ImageSpec{Image:,Annotations:"),
    ],
)  # fmt: skip
async def test_image_volumes_that_cannot_be_CRI_099(
    runtime: Runtime, mount: cri.Mount, code: str, words: str
) -> None:
    since_2(runtime)
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    with pytest.raises(grpc.RpcError) as failure:
        await runtime.create(sandbox, config, IDLE, mounts=[mount])
    assert failure.value.code().name == code
    assert words in failure.value.details()


async def test_an_image_volume_is_seen_inside_CRI_099(runtime: Runtime) -> None:
    since_2(runtime)
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    container = await runtime.create(sandbox, config, IDLE, mounts=[volume()])
    await runtime.start(container)
    script = "ls /v; touch /v/x"
    assert await execute(runtime, container, "sh", "-c", script) == (
        1, "bin\netc\nroot\ntmp\nvar\n", "touch: /v/x: Read-only file system\n"
    )  # fmt: skip


OF_APP = cri.ImageSpec(image=APP_IMAGE)


@pytest.mark.parametrize(
    ("sub_path", "script", "expected"),
    [
        ("", "ls /v; cat /v/etc/group", (0, "bin\ndata\netc\nroot\ntmp\nvar\nroot:x:0:\n"
         "nogroup:x:65534:\napp:x:1000:\nextra:x:50000:app\nmore:x:50001:nobody,app\n", "")),
        ("data", "ls /v /v/deep; rm /v/empty", (1, "/v:\ndeep\nempty\n\n/v/deep:\nnone\n",
         "rm: can't remove '/v/empty': Read-only file system\n")),
        ("data/deep/", "ls /v", (0, "none\n", "")),
    ],
)  # fmt: skip
async def test_a_part_of_an_image_as_a_volume_CRI_099(
    runtime: Runtime, sub_path: str, script: str, expected: tuple[int, str, str]
) -> None:
    since_2(runtime)
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    mount = volume(image=OF_APP, image_sub_path=sub_path)
    container = await runtime.create(sandbox, config, IDLE, mounts=[mount])
    await runtime.start(container)
    if sub_path:
        await knows_sub_paths(runtime, container)
    assert await execute(runtime, container, "sh", "-c", script) == expected


async def knows_sub_paths(runtime: Runtime, container: str) -> None:
    """Skip the test on a runtime that mounts the whole image whatever `image_sub_path` says."""
    if runtime.version.startswith("2.1"):
        whole = (0, "bin\ndata\netc\nroot\ntmp\nvar\n", "")
        assert await execute(runtime, container, "ls", "/v") == whole
        pytest.skip("containerd 2.1 does not look at image_sub_path")


async def user_of(runtime: Runtime, **security: Any) -> tuple[str, Any]:
    """What `id` says in a container of the image with users of its own, and what the runtime tells
    of the user."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    linux = cri.LinuxContainerConfig(
        security_context=cri.LinuxContainerSecurityContext(
            namespace_options=cri.NamespaceOption(pid=cri.CONTAINER), **security
        )
    )
    container = await runtime.create(sandbox, config, IDLE, image=OF_APP, linux=linux)
    await runtime.start(container)
    code, out, err = await execute(runtime, container, "sh", "-c", "id -u; id -g; id -G; id -un")
    assert (code, err) == (0, "")
    return out, (await runtime.status(container)).user.linux


MERGE, STRICT = cri.Merge, cri.Strict
APP_USER = cri.Int64Value(value=1000)


@pytest.mark.parametrize(
    ("security", "seen", "told"),
    [
        ({"run_as_user": APP_USER}, "1000\n1000\n1000 50000 50001\napp\n",
         (1000, 1000, [1000, 50000, 50001])),
        ({"run_as_username": "app", "supplemental_groups": [60000]},
         "1000\n1000\n1000 50000 50001 60000\napp\n", (1000, 1000, [1000, 50000, 50001, 60000])),
        ({"run_as_user": APP_USER, "run_as_group": cri.Int64Value(value=7),
          "supplemental_groups": [60000, 50000]}, "1000\n7\n7 50000 50001 60000\napp\n",
         (1000, 7, [7, 50000, 50001, 60000])),
        ({"run_as_user": APP_USER, "supplemental_groups": [60000],
          "supplemental_groups_policy": STRICT}, "1000\n1000\n1000 60000\napp\n",
         (1000, 1000, [1000, 60000])),
        ({"run_as_user": APP_USER, "supplemental_groups_policy": STRICT},
         "1000\n1000\n1000\napp\n", (1000, 1000, [1000])),
    ],
)  # fmt: skip
async def test_groups_of_the_image_and_of_the_request_CRI_084(
    runtime: Runtime, security: dict[str, Any], seen: str, told: tuple[int, int, list[int]]
) -> None:
    if security.get("supplemental_groups_policy") == STRICT:
        since_2(runtime)  # older ones do not know the field
    out, linux = await user_of(runtime, **security)
    assert out == seen
    if not runtime.version.startswith("1."):  # older ones do not tell it
        assert (linux.uid, linux.gid, list(linux.supplemental_groups)) == told
