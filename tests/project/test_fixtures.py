"""The shipped manifests are pods that refkubelet accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import ROOT

from fakecri.scripts.script import load_script
from refkubelet.model.pod import uid
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import read_manifest

MANIFESTS = sorted((ROOT / "fixtures" / "manifests").glob("*.yaml"))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifest_is_a_static_pod(path: Path) -> None:
    pod = read_manifest(path.read_bytes(), source=PodSource.FILE, origin=str(path), node_name="n")
    assert pod.metadata.name == f"{path.stem}-n"
    assert len(uid(pod)) == 32


def test_there_are_manifests() -> None:
    assert len(MANIFESTS) >= 3


def test_the_fake_is_told_what_the_containers_of_the_manifests_do() -> None:
    script = load_script(MANIFESTS[0].parents[1] / "fake.yaml")
    pods = {entry.selectors["pod"].removesuffix("*") for entry in script.behaviors}
    assert pods == {path.stem for path in MANIFESTS}
