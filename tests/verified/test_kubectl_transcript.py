"""What kubectl says of the fake API server is what it says of a real one, and what it says of
refkubelet is what it says of a kubelet.

The transcript is kept of kube-apiserver 1.36.2 with refkubelet as its node, that of rollouts with
a kube-controller-manager and a kubelet 1.36.2:

    REFKUBELET_KUBECTL=.../kubectl REFKUBELET_KUBECTL_CLUSTER=KUBECONFIG \\
        REFKUBELET_KUBECTL_RECORD=1 pytest tests/verified/test_kubectl_transcript.py

Without REFKUBELET_KUBECTL_RECORD the real server is compared with what was kept, without
REFKUBELET_KUBECTL_CLUSTER the fake is. REFKUBELET_KUBECTL_KUBELET names a kubelet that is the node
in place of refkubelet.
"""

from __future__ import annotations

import difflib
import doctest
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import kubectl_rollout
import kubectl_steps
import kubectl_transcript
import pytest
from kubectl_cluster import CLUSTER, cluster, why_not
from kubectl_differences import DIFFERENCES
from kubectl_transcript import read, transcript, written
from places import ROOT

KEPT: Final = ROOT / "tests" / "data" / "kubectl"
STEPS: Final = {
    "transcript-1.36.txt": kubectl_steps.STEPS,
    "rollout-1.36.txt": kubectl_rollout.STEPS,
}
RECORD: Final = bool(os.environ.get("REFKUBELET_KUBECTL_RECORD"))


@pytest.mark.timeout(3600)
async def test_kubectl_says_of_the_fake_what_it_says_of_a_real_server(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    known = {} if CLUSTER else DIFFERENCES
    await _compare("transcript-1.36.txt", kubectl_steps.FILES, known, tmp_path)


@pytest.mark.timeout(3600)
async def test_kubectl_says_of_rollouts_what_it_says_with_a_kubelet(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    if not CLUSTER:
        pytest.skip("REFKUBELET_KUBECTL_CLUSTER names no cluster with a Deployment controller")
    await _compare("rollout-1.36.txt", kubectl_rollout.FILES, {}, tmp_path)


async def _compare(
    name: str, files: Mapping[str, str], known: Mapping[str, str], directory: Path
) -> None:
    """Type the steps of the kept transcript of that name, and expect what was kept, or keep it.
    `known`: the commands whose output differs -> why."""
    kept = KEPT / name
    async with cluster(directory) as config:
        found = await transcript(STEPS[name], files, config, directory)
    if RECORD:
        kept.write_text(written(found))
        return
    (directory / name).write_text(written(found))
    found, wanted = read(written(found)), read(kept.read_text())
    assert [command for command, _ in found] == [command for command, _ in wanted]
    differ = {
        f"{number} {command}": "\n".join(difflib.unified_diff(was.split("\n"), now.split("\n")))
        for number, ((command, was), (_, now)) in enumerate(zip(wanted, found, strict=True))
        if was != now
    }
    wrong = {key: text for key, text in differ.items() if key.split(" ", 1)[1] not in known}
    assert not wrong, "\n\n".join(f"{key}\n{text}" for key, text in wrong.items())
    unneeded = set(known) - {key.split(" ", 1)[1] for key in differ}
    assert unneeded == set(), "these rows of kubectl_differences.py are not needed any more"


def test_a_transcript_is_read_as_it_is_written() -> None:
    found = [("kubectl a", "one\n\ntwo"), ("kubectl b", ""), ("kubectl c", "! no\nexit 1")]
    assert read(written(found)) == found


@pytest.mark.parametrize("name", STEPS)
def test_the_kept_transcript_is_of_the_steps(name: str) -> None:
    commands = [command for command, _ in read((KEPT / name).read_text())]
    assert commands == [step.shown for step in STEPS[name]]


def test_normalised() -> None:
    assert doctest.testmod(kubectl_transcript).failed == 0
