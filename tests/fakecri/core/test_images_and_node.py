"""The image store and the fake machine, without calls around them."""

from __future__ import annotations

import asyncio
import base64
import string
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as cri

from fakecri import CriError, FakeCRI, FakeNode, Filesystem, RegistryImage, registry_of
from fakecri.core.image_store.images import ImageStore, credentials_of
from fakecri.core.image_store.references import parse_reference
from fakecri.machine.values import GIB, Tenant, Usage

UNKNOWN = grpc.StatusCode.UNKNOWN


class Uses(Tenant):
    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def usage(self) -> Usage:
        return self._usage


HEX = "0123456789abcdef" * 4
WORD = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("user/app", "docker.io/user/app:latest"),
        ("index.docker.io/user/app", "docker.io/user/app:latest"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("localhost/busybox:1", "localhost/busybox:1"),
        ("localhost:5000/a/b", "localhost:5000/a/b:latest"),
        (f"r.io/a:1@sha256:{HEX}", f"r.io/a@sha256:{HEX}"),
    ],
)
def test_references_normalise_CRI_090(written: str, normal: str) -> None:
    assert str(parse_reference(written)) == normal


@pytest.mark.parametrize("text", ["", "UPPER", "a b", "r.io/", "a:", "a@sha256:12", ":1", "a::1"])
def test_malformed_references_are_refused_CRI_090(text: str) -> None:
    with pytest.raises(ValueError, match="invalid reference format"):
        parse_reference(text)
    store = ImageStore()
    assert store.find(text) is None
    store.remove(text)
    with pytest.raises(CriError) as failure:
        store.look_up_in_registry(text)
    assert failure.value.details().startswith(f'failed to parse image reference "{text}"')


@given(st.lists(WORD, min_size=1, max_size=3), WORD)
def test_normalising_twice_changes_nothing_CRI_090(parts: list[str], tag: str) -> None:
    once = str(parse_reference(f"{'/'.join(parts)}:{tag}"))
    assert str(parse_reference(once)) == once


def test_images_are_found_by_every_name_CRI_091() -> None:
    store = ImageStore()
    image = store.add("r.io/a:1")
    digest = image.digests[0]
    names = ("r.io/a:1", digest, image.id, image.id.removeprefix("sha256:"), image.id[7:20])
    assert all(store.find(name) == image for name in names)
    assert store.find(digest.partition("@")[2]) is None  # a bare manifest digest
    assert store.find(f"r.io/a:other@{digest.partition('@')[2]}") == image
    assert store.find("r.io/a:2") is None
    assert store.find("") is None


def test_a_moved_tag_leaves_its_old_image_CRI_093() -> None:
    store = ImageStore(registry_of({"r.io/a:1": RegistryImage(content="old")}))
    old = store.add("r.io/a:1", RegistryImage(content="old"))
    new = store.add("r.io/a:1", RegistryImage(content="new"))
    assert store.find("r.io/a:1") == new
    assert store.images[old.id].tags == ()


def test_every_image_has_id_and_size_CRI_008() -> None:
    image = ImageStore().add("busybox")
    assert image.id.startswith("sha256:")
    assert image.size_bytes > 0


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (cri.AuthConfig(), None),
        (cri.AuthConfig(username="u", password="p", identity_token="t"), ("u", "p")),
        (cri.AuthConfig(identity_token="t"), ("", "t")),
        (cri.AuthConfig(auth=base64.b64encode(b"u:p").decode()), ("u", "p")),
        (cri.AuthConfig(registry_token="r"), None),
    ],
)
def test_credentials_are_read_in_order_CRI_097(
    auth: cri.AuthConfig, expected: tuple[str, str] | None
) -> None:
    assert credentials_of(auth) == expected


def test_bad_base64_is_an_error_CRI_097() -> None:
    bad = cri.AuthConfig(auth="dXNlcg*=")
    with pytest.raises(ValueError, match="illegal base64 data at input byte 6"):
        credentials_of(bad)
    closed = RegistryImage(credentials=("u", "p"))
    store = ImageStore(registry_of({"r.io/open:1": RegistryImage(), "r.io/a:1": closed}))
    assert store.look_up_in_registry("r.io/open:1", bad)  # nobody asked for it
    with pytest.raises(CriError) as failure:
        store.look_up_in_registry("r.io/a:1", bad)
    assert failure.value.code() is UNKNOWN
    assert failure.value.details().endswith(": illegal base64 data at input byte 6")


def test_a_registry_may_ask_for_credentials_CRI_096() -> None:
    store = ImageStore(registry_of({"r.io/a:1": RegistryImage(credentials=("u", "p"))}))
    assert store.look_up_in_registry("r.io/a:1", cri.AuthConfig(username="u", password="p"))
    for wrong in (None, cri.AuthConfig(username="u", password="q")):
        with pytest.raises(CriError) as failure:
            store.look_up_in_registry("r.io/a:1", wrong)
        assert failure.value.code() is UNKNOWN
        assert failure.value.details() == (
            'failed to pull and unpack image "r.io/a:1": failed to resolve reference "r.io/a:1": '
            "pulling from host r.io failed with status code [manifests 1]: 401 Unauthorized"
        )


def test_memory_is_base_and_containers() -> None:
    node = FakeNode(memory_bytes=8 * GIB, base_memory_used_bytes=GIB)
    node.tenant = Uses(Usage(memory_bytes=2 * GIB))
    assert node.memory().working_set_bytes == 3 * GIB
    node.tenant = Uses(Usage(memory_bytes=100 * GIB))
    assert node.memory().working_set_bytes == node.memory().total_bytes


def test_the_longest_mount_holds_a_path() -> None:
    disks = {"/": Filesystem("root"), "/var/lib/containerd": Filesystem("images")}
    node = FakeNode(filesystems=disks)
    assert node.filesystem("/var/lib/kubelet").device == "root"
    assert node.filesystem("/var/lib/containerd/x").device == "images"
    assert node.filesystem("/var/lib/containerd-old").device == "root"
    with pytest.raises(FileNotFoundError, match="on no filesystem"):
        FakeNode(filesystems={"/data": Filesystem("d")}).filesystem("/etc")


def test_disks_count_only_what_they_hold() -> None:
    root = Filesystem("root", holds_images=False)
    images = Filesystem("images", holds_containers=False)
    node = FakeNode(filesystems={"/": root, "/images": images})
    node.tenant = Uses(Usage(writable_bytes=5, image_bytes=7))
    assert node.filesystem("/").available_bytes == 80 * GIB - 5
    assert node.filesystem("/images").available_bytes == 80 * GIB - 7
    images.base_used_bytes = 1000 * GIB
    assert node.filesystem("/images").available_bytes == 0


def test_inodes_count_as_bytes_do() -> None:
    root = Filesystem("root", holds_images=False)
    images = Filesystem("images", holds_containers=False)
    node = FakeNode(filesystems={"/": root, "/images": images})
    node.tenant = Uses(Usage(writable_inodes=5, image_inodes=7))
    free = 6_553_600 - 500_000
    assert node.filesystem("/").inodes_free == free - 5
    assert node.filesystem("/images").inodes_free == free - 7


async def image_fs(fake: FakeCRI) -> Any:
    return await fake.call("ImageFsInfo", cri.ImageFsInfoRequest())


async def test_one_filesystem_for_images_and_layers_or_two_CRI_098_EVIC_040() -> None:
    fake = FakeCRI(images=["localhost/a:1"])
    one = await image_fs(fake)
    assert [fs.fs_id.mountpoint for fs in one.image_filesystems] == ["/var/lib/containerd"]
    assert one.image_filesystems[0].inodes_used.value == 100
    assert not one.container_filesystems
    fake.node.container_root = "/layers"
    two = await image_fs(fake)
    assert two.image_filesystems[0].used_bytes.value == 2_000_000
    assert two.container_filesystems[0].fs_id.mountpoint == "/layers"
    assert two.container_filesystems[0].used_bytes.value == 0


@pytest.mark.virtual_time
async def test_a_time_stamp_of_the_filesystem_that_stands_still_EVIC_054() -> None:
    fake = FakeCRI()
    fake.node.image_root = "/nowhere"  # EVIC-041
    fake.node.image_fs_time_ns = 7
    await asyncio.sleep(60)
    (frozen,) = (await image_fs(fake)).image_filesystems
    assert (frozen.timestamp, frozen.fs_id.mountpoint) == (7, "/nowhere")
    fake.node.image_fs_time_ns = None
    (now,) = (await image_fs(fake)).image_filesystems
    assert now.timestamp == fake.clock.wall_ns()
