"""What a pull meets, on the fake and on a real containerd with a real registry (CRI-090..097).

Codes and texts must be equal, but for the two that containerd words by version: what a refused
login says, and the address behind a refused connection.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
import pytest_asyncio
from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness.image_registry import PASSWORD, USER, ImageRegistry
from kubelet_conformance.harness.runtimes.fake import FakeRegistry

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

LOGIN = cri.AuthConfig(username=USER, password=PASSWORD)


@dataclass(frozen=True)
class Side:
    """A runtime, and the registry that it pulls from."""

    target: Any
    registry: ImageRegistry
    version: str = ""
    """containerd's; "" for the fake, which speaks as 1.6 does."""

    async def pull(self, image: str, auth: Any = None) -> str:
        request = cri.PullImageRequest(image=cri.ImageSpec(image=image), auth=auth)
        answer = await self.target.call("PullImage", request, timeout_s=60)
        return str(answer.image_ref)

    async def refused(self, image: str, auth: Any = None) -> tuple[str, str]:
        """Code and text, in the words of 1.6."""
        with pytest.raises(grpc.RpcError) as failure:
            await self.pull(image, auth)
        text = (failure.value.details() or "").replace(
            "failed to resolve image:", f'failed to resolve reference "{image}":'
        )
        return failure.value.code().name, text

    async def status(self, image: str) -> Any:
        request = cri.ImageStatusRequest(image=cri.ImageSpec(image=image))
        return (await self.target.call("ImageStatus", request, timeout_s=10)).image


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=["fake", pytest.param("real", marks=pytest.mark.real)],
)
async def side(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Side]:
    if request.param == "fake":
        from fakecri import FakeCRI

        registry = FakeRegistry()
        await registry.add("app:1")
        yield Side(FakeCRI(registry=registry), registry)
        return
    if os.environ.get("REFKUBELET_CONTAINERD") != "1":
        pytest.skip("real containerd: set REFKUBELET_CONTAINERD=1 (needs Docker)")
    from fakecri.server import GrpcUpstream
    from kubelet_conformance.harness.containerd.image_registries import NodeRegistries
    from kubelet_conformance.harness.containerd.start import start_containerd

    workdir = tmp_path_factory.mktemp("p")
    async with start_containerd(workdir) as node, GrpcUpstream(node.endpoint) as upstream:
        real = await NodeRegistries(node).make()
        await real.add("app:1")
        yield Side(upstream, real, node.version)


def unresolved(image: str, why: str) -> str:
    return (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {why}'
    )


async def test_a_pull_answers_with_the_image_id_CRI_092_CRI_093(side: Side) -> None:
    """Also when it is there, and under another name: then it is one image with both."""
    first, second = (
        f"{host}/app:1" for host in (side.registry.open_host, side.registry.closed_host)
    )
    image_id = await side.pull(first)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", image_id)
    assert await side.pull(first) == await side.pull(second, LOGIN) == image_id
    image = await side.status(first)
    assert image.id == image_id
    assert sorted(image.repo_tags) == sorted([first, second])
    assert image.size > 0


@pytest.mark.parametrize("name", ["app:2", "nothing:1"])
async def test_an_unknown_image_CRI_096(side: Side, name: str) -> None:
    image = f"{side.registry.open_host}/{name}"
    text = unresolved(image, f"{image}: not found")
    assert await side.refused(image) == ("NOT_FOUND", text)
    behind = f"{side.registry.closed_host}/{name}"
    text = unresolved(behind, f"{behind}: not found")
    assert await side.refused(behind, LOGIN) == ("NOT_FOUND", text)


@pytest.mark.parametrize(
    "auth", [None, cri.AuthConfig(username=USER, password="guess")], ids=["nobody", "wrong"]
)
@pytest.mark.parametrize("name", ["app:1", "nothing:1"])
async def test_a_refused_login_CRI_096(side: Side, name: str, auth: Any) -> None:
    """It does not tell whether the image is there."""
    image = f"{side.registry.closed_host}/{name}"
    code, text = await side.refused(image, auth)
    assert code == "UNKNOWN"
    assert text.startswith(unresolved(image, ""))
    if side.version.startswith("1.6") or not side.version:
        host = r"\S+" if side.version else side.registry.closed_host
        why = rf"pulling from host {host} failed with status code \[manifests 1\]: 401 Unauthorized"
    elif auth is None:
        why = "pull access denied, repository does not exist or may require authorization: .*"
    else:
        why = r"unexpected status from HEAD request to \S+: 401 Unauthorized"
    assert re.fullmatch(why, text.removeprefix(unresolved(image, ""))), text


@pytest.mark.parametrize(
    "auth",
    [
        LOGIN,
        cri.AuthConfig(auth=base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()),
    ],
    ids=["password", "auth"],
)
async def test_a_login_in_either_form_CRI_097(side: Side, auth: Any) -> None:
    assert await side.pull(f"{side.registry.closed_host}/app:1", auth)


async def test_a_login_that_nobody_asked_for_CRI_097(side: Side) -> None:
    bad = cri.AuthConfig(auth="###")
    assert await side.pull(f"{side.registry.open_host}/app:1", bad)
    code, text = await side.refused(f"{side.registry.closed_host}/app:1", bad)
    assert code == "UNKNOWN"
    assert text.endswith(": illegal base64 data at input byte 0")


async def test_an_upper_case_path_CRI_090(side: Side) -> None:
    image = f"{side.registry.open_host}/App:1"
    why = "invalid reference format: repository name must be lowercase"
    code, text = await side.refused(image)
    assert code == "UNKNOWN"
    named = text.replace("repository name (App) must", "repository name must")  # 1.7 and newer
    assert named == f'failed to parse image reference "{image}": {why}'


async def test_an_outage_and_its_end_CRI_096(side: Side) -> None:
    image = f"{side.registry.open_host}/late:1"
    await side.registry.stop()
    code, text = await side.refused(image)
    assert code == "UNKNOWN"
    assert text.startswith(unresolved(image, 'failed to do request: Head "http'))
    assert text.endswith(": connect: connection refused")
    await side.registry.start()
    await side.registry.add("late:1")
    assert await side.pull(image)


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("nosuch", "docker.io/library/nosuch:latest"),
        ("some/nosuch:1", "docker.io/some/nosuch:1"),
        ("index.docker.io/nosuch:1", "docker.io/library/nosuch:1"),
        (f"nosuch:1@sha256:{'0' * 64}", f"docker.io/library/nosuch@sha256:{'0' * 64}"),
    ],
)
async def test_what_a_reference_leaves_out_CRI_090(side: Side, given: str, whole: str) -> None:
    """Nobody serves these; what is told of that has the whole reference."""
    _, text = await side.refused(given)
    assert f'"{whole}"' in text


async def test_a_malformed_reference_is_no_image_CRI_090(side: Side) -> None:
    code, text = await side.refused("")
    assert code == "UNKNOWN"
    assert text.startswith('failed to parse image reference "": invalid reference format')
    assert not (await side.status("Up/Per:1")).id
    remove = cri.RemoveImageRequest(image=cri.ImageSpec(image="Up/Per:1"))
    await side.target.call("RemoveImage", remove, timeout_s=10)


async def test_every_name_finds_an_image_CRI_091_CRI_093(side: Side) -> None:
    name = f"{side.registry.open_host}/named:1"
    await side.registry.add("named:1")
    image_id = await side.pull(name)
    image = await side.status(name)
    (digest,) = image.repo_digests
    repository, _, manifest = digest.partition("@")
    assert repository == name.removesuffix(":1")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", manifest)
    assert not image.HasField("spec")
    bare = image_id.removeprefix("sha256:")
    for known in (name, digest, image_id, bare, bare[:20], f"{repository}:other@{manifest}"):
        assert (await side.status(known)).id == image_id, known
    for unknown in (manifest, f"{repository}:2"):
        assert not (await side.status(unknown)).id, unknown


async def test_one_name_of_an_image_removes_all_CRI_095(side: Side) -> None:
    await side.registry.add("gone:1")
    names = [f"{host}/gone:1" for host in (side.registry.open_host, side.registry.closed_host)]
    for name in names:
        image_id = await side.pull(name, LOGIN)
    for _ in range(2):
        remove = cri.RemoveImageRequest(image=cri.ImageSpec(image=names[1]))
        await side.target.call("RemoveImage", remove, timeout_s=10)
        for name in (*names, image_id):
            assert not (await side.status(name)).id


async def test_pulls_of_one_image_at_once_CRI_096(side: Side) -> None:
    await side.registry.add("busy:1")
    name = f"{side.registry.open_host}/busy:1"
    answers = await asyncio.gather(*(side.pull(name) for _ in range(4)))
    assert set(answers) == {(await side.status(name)).id}


async def test_a_pull_that_is_given_up_leaves_nothing_CRI_096(side: Side) -> None:
    if side.version:
        pytest.skip("a real registry is too quick to give up")
    from fakecri import FakeCRI, RegistryImage

    fake = FakeCRI(registry=lambda _: RegistryImage(pull_s=0.5))
    request = cri.PullImageRequest(image=cri.ImageSpec(image="slow:1"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await fake.call("PullImage", request)
    await asyncio.sleep(0.6)
    assert not (await Side(fake, side.registry).status("slow:1")).id
    assert (await fake.call("PullImage", request)).image_ref


@pytest.mark.parametrize(
    "address", ["https://elsewhere.test", "{host}", "https://{host}", "http://{host}/v2/"]
)
async def test_a_login_is_for_the_registry_that_it_names_CRI_097(side: Side, address: str) -> None:
    """By a URL: a host alone names none."""
    host = side.registry.closed_host
    auth = cri.AuthConfig(username=USER, password=PASSWORD)
    auth.server_address = address.format(host=host)
    image = f"{host}/app:1"
    if auth.server_address.startswith("http") and host in auth.server_address:
        if side.version:
            pytest.skip("it must be the host that is asked, and here that is a mirror's")
        assert await side.pull(image, auth)
    else:
        assert (await side.refused(image, auth))[0] == "UNKNOWN"


async def test_a_registry_token_is_no_login_CRI_097(side: Side) -> None:
    token = cri.AuthConfig(registry_token=base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode())
    code, _ = await side.refused(f"{side.registry.closed_host}/app:1", token)
    assert code == "UNKNOWN"


async def test_the_first_form_of_a_login_counts_CRI_097(side: Side) -> None:
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    wrong = cri.AuthConfig(username=USER, password="guess", auth=auth)
    code, _ = await side.refused(f"{side.registry.closed_host}/app:1", wrong)
    assert code == "UNKNOWN"
    both = cri.AuthConfig(username=USER, password=PASSWORD, auth="###")
    assert await side.pull(f"{side.registry.closed_host}/app:1", both)
    token = cri.AuthConfig(identity_token="guess", auth=auth)
    code, _ = await side.refused(f"{side.registry.closed_host}/app:1", token)
    assert code == "UNKNOWN"


async def test_the_sandbox_image_is_pinned_and_can_be_removed_CRI_093_CRI_095(side: Side) -> None:
    if side.version.startswith("1.6"):
        pytest.skip("images are pinned since containerd 1.7")
    answer = await side.target.call("ListImages", cri.ListImagesRequest(), timeout_s=10)
    (pinned,) = [image for image in answer.images if image.pinned]
    assert any("pause" in tag for tag in pinned.repo_tags)
    remove = cri.RemoveImageRequest(image=cri.ImageSpec(image=pinned.id))
    await side.target.call("RemoveImage", remove, timeout_s=10)
    assert not (await side.status(pinned.id)).id


async def test_the_user_of_an_image_is_a_number_or_a_name_CRI_093(side: Side) -> None:
    if side.version:
        pytest.skip("the images of the registry have no user")
    from fakecri import RegistryImage

    side.target.images.add("localhost/seven:1", RegistryImage(uid=7))
    side.target.images.add("localhost/named:1", RegistryImage(username="app"))
    seven, named = [await side.status(f"localhost/{name}:1") for name in ("seven", "named")]
    assert (seven.uid.value, seven.username) == (7, "")
    assert (named.HasField("uid"), named.username) == (False, "app")


async def test_the_filesystem_of_images_CRI_098(side: Side) -> None:
    answer = await side.target.call("ImageFsInfo", cri.ImageFsInfoRequest(), timeout_s=10)
    assert answer.image_filesystems
    for filesystem in answer.image_filesystems:
        assert filesystem.timestamp > 0
        assert filesystem.fs_id.mountpoint.startswith("/")
        assert filesystem.HasField("used_bytes")
        assert filesystem.HasField("inodes_used")
