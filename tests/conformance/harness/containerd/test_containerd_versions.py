"""Which containerd a run gets: names, images, configurations and errors, told without Docker."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubelet_conformance.harness.containerd import image
from kubelet_conformance.harness.containerd.docker_host import NodeError
from kubelet_conformance.harness.containerd.image import (
    build_from_packages,
    dockerfile,
    image_tag,
    package_version,
)
from kubelet_conformance.harness.containerd.settings import (
    PAUSE_IMAGE,
    NodeSettings,
    containerd_config,
)
from kubelet_conformance.harness.containerd.versions import RELEASES, VERSIONS, Release, release_of

STATUS = """\
Package: containerd-doc
Status: install ok installed
Version: 9

Package: containerd
Status: install ok installed
Architecture: amd64
Version: 2.2.0+ds1-1
Depends: runc

Package: runc
Version: 1.3
"""


@pytest.fixture(autouse=True)
def no_version_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFKUBELET_CONTAINERD_VERSION", raising=False)


def test_the_option_goes_before_the_environment_and_that_before_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert release_of().version == "1.6"
    monkeypatch.setenv("REFKUBELET_CONTAINERD_VERSION", "1.7")
    assert release_of().version == "1.7"
    assert release_of("2.1").version == "2.1"


def test_an_unknown_version_lists_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NodeError, match=r"version '3.0' is not known; wanted 1.6, 1.7, 2.1"):
        release_of("3.0")
    monkeypatch.setenv("REFKUBELET_CONTAINERD_VERSION", "latest")
    with pytest.raises(NodeError, match="REFKUBELET_CONTAINERD_VERSION 'latest' is not known"):
        release_of()


@pytest.mark.parametrize(
    ("version", "found", "same"),
    [
        ("1.6", "1.6.20~ds1", True),
        ("1.6", "v1.6.36", True),
        ("1.6", "1.60.1", False),
        ("2.1", "2.1.9+unknown", True),
        ("2.1", "12.1.0", False),
        ("2.1", "nothing", False),
    ],
)
def test_a_full_version_belongs_to_one_release(version: str, found: str, same: bool) -> None:
    assert release_of(version).is_version(found) is same


def test_every_version_has_an_image_of_its_own() -> None:
    tags = [image_tag(release) for release in RELEASES]
    assert len(set(tags)) == len(VERSIONS)
    assert all(v in tag for v, tag in zip(VERSIONS, tags, strict=True))


@pytest.mark.parametrize("release", RELEASES, ids=VERSIONS)
def test_both_ways_to_an_image_take_the_same_suite(release: Release) -> None:
    text = dockerfile(release)
    assert text.startswith(f"FROM debian:{release.suite}-slim\n")
    assert f"grep '^{release.version[0]}\\.{release.version[2]}[^0-9]'" in text


@pytest.mark.parametrize("version", ["1.6", "1.7"])
def test_containerd_1_gets_a_configuration_of_version_2(version: str) -> None:
    config = _config(release_of(version))
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert config["version"] == 2
    assert cri["sandbox_image"] == PAUSE_IMAGE
    assert cri["restrict_oom_score_adj"] is True


def test_containerd_2_gets_a_configuration_of_version_3() -> None:
    config = _config(release_of("2.1"))
    images = config["plugins"]["io.containerd.cri.v1.images"]
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert config["version"] == 3
    assert images["pinned_images"] == {"sandbox": PAUSE_IMAGE}
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["cni"]["bin_dirs"] == ["/usr/lib/cni"]


def _config(release: Release) -> dict[str, Any]:
    settings = NodeSettings(True, "/tmp/n/root", config_version=release.config_version)
    return tomllib.loads(containerd_config(settings))


def test_the_version_of_a_package_is_read_from_the_status_of_dpkg() -> None:
    assert package_version(STATUS, "containerd") == "2.2.0+ds1-1"
    assert package_version(STATUS, "runc") == "1.3"
    assert package_version(STATUS, "crun") == "nothing"


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of a build; debootstrap unpacks nothing but `STATUS`."""
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        if "http://gone.test" in command:
            raise NodeError("debootstrap failed with code 1: E: Failed getting release file")
        if command[0] == "debootstrap":
            status = Path(command[4], "var/lib/dpkg/status")
            status.parent.mkdir(parents=True)
            status.write_text(STATUS)

    monkeypatch.setattr(image, "_run", run)
    monkeypatch.setattr(image.os, "geteuid", lambda: 0)
    monkeypatch.setattr(image.shutil, "which", lambda name: f"/usr/sbin/{name}")
    return commands


def test_a_suite_that_moved_on_makes_no_image(unpacked: list[list[str]]) -> None:
    """Debian's forky will have containerd 2.2 one day; that must not be tested as 2.1."""
    client = SimpleNamespace(api=None)  # an import would fail
    with pytest.raises(NodeError, match=r"has containerd 2\.2\.0\+ds1-1, wanted 2\.1: .*snapshot"):
        build_from_packages(client, release_of("2.1"))
    assert unpacked[0][3:] == ["forky", unpacked[0][4], "http://deb.debian.org/debian", "sid"]


def test_an_unreachable_suite_names_suite_and_mirror(
    unpacked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFKUBELET_DEBIAN_MIRROR", "http://gone.test")
    text = r"suite trixie of http://gone\.test: .*release file \(REFKUBELET_DEBIAN_MIRROR names"
    with pytest.raises(NodeError, match=text):
        build_from_packages(SimpleNamespace(api=None), release_of("1.7"))
    assert unpacked[0][-1] == "http://gone.test"
