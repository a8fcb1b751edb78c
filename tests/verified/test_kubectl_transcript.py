"""What kubectl says of the fake API server is what it says of a real one.

The kept transcript is of kube-apiserver 1.36.2 with refkubelet as its node:

    REFKUBELET_KUBECTL=.../kubectl REFKUBELET_KUBECTL_CLUSTER=KUBECONFIG \\
        REFKUBELET_KUBECTL_RECORD=1 pytest tests/verified/test_kubectl_transcript.py

Without REFKUBELET_KUBECTL_RECORD the real server is compared with what was kept, without
REFKUBELET_KUBECTL_CLUSTER the fake is.
"""

from __future__ import annotations

import difflib
import doctest
import os
from pathlib import Path
from typing import Final

import kubectl_transcript
import pytest
from kubectl_cluster import CLUSTER, cluster, why_not
from kubectl_differences import DIFFERENCES
from kubectl_transcript import read, transcript, written
from places import ROOT

KEPT: Final = ROOT / "tests" / "data" / "kubectl" / "transcript-1.36.txt"
RECORD: Final = bool(os.environ.get("REFKUBELET_KUBECTL_RECORD"))


@pytest.mark.timeout(3600)
async def test_kubectl_says_of_the_fake_what_it_says_of_a_real_server(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    async with cluster(tmp_path) as config:
        found = await transcript(config, tmp_path)
    if RECORD:
        KEPT.write_text(written(found))
        return
    (tmp_path / "transcript.txt").write_text(written(found))
    found, wanted = read(written(found)), read(KEPT.read_text())
    assert [command for command, _ in found] == [command for command, _ in wanted]
    differ = {
        f"{number} {command}": "\n".join(difflib.unified_diff(was.split("\n"), now.split("\n")))
        for number, ((command, was), (_, now)) in enumerate(zip(wanted, found, strict=True))
        if was != now
    }
    known = {} if CLUSTER else DIFFERENCES
    wrong = {key: text for key, text in differ.items() if key.split(" ", 1)[1] not in known}
    assert not wrong, "\n\n".join(f"{key}\n{text}" for key, text in wrong.items())
    unneeded = set(known) - {key.split(" ", 1)[1] for key in differ}
    assert unneeded == set(), "these rows of kubectl_differences.py are not needed any more"


def test_a_transcript_is_read_as_it_is_written() -> None:
    found = [("kubectl a", "one\n\ntwo"), ("kubectl b", ""), ("kubectl c", "! no\nexit 1")]
    assert read(written(found)) == found


def test_the_kept_transcript_is_of_the_steps() -> None:
    commands = [command for command, _ in read(KEPT.read_text())]
    assert commands == [step.shown for step in kubectl_transcript.STEPS]


def test_normalised() -> None:
    assert doctest.testmod(kubectl_transcript).failed == 0
