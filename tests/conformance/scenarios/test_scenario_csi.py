"""Scenarios with CSI drivers: they pass on refkubelet, fail on wrong kubelets, and their mistakes
are told with their places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from kubelet_conformance.features import Feature
from kubelet_conformance.harness.runs.case_run import Outcome
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.scenarios.case import case_of, needs_of
from kubelet_conformance.scenarios.reading import load_scenario, read_scenario
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.values import parse_yaml
from refkubelet.volumes.csi.attachments import Attachments
from refkubelet.volumes.csi.publishing import Publishing
from refkubelet.volumes.csi.records import remove_mount
from refkubelet.volumes.csi.staging import Staging

FOLDER = ROOT / "tests/data/scenarios_csi"
FILES = sorted(FOLDER.glob("*.yaml"))


async def forgets(_: Any, record: Any) -> None:
    """A wrong kubelet forgets a staged volume, and does not tell its driver."""
    remove_mount(record)


async def tells_nothing(*_: Any) -> dict[str, str]:
    """A wrong kubelet does not ask what came of attaching a volume."""
    return {}


async def says_so_only(self: Any, record: Any, client: Any) -> None:
    """A wrong kubelet takes a volume for unpublished whatever the driver says."""
    self._published.pop(record.directory, None)


WRONG = {
    "killed-between-stage-and-publish": (Staging, "_unstage", forgets, "The volume stays"),
    "lost-answer-is-undone": (Publishing, "unpublish", says_so_only, "The volume stays published"),
    "driver-dies-at-the-end": (Publishing, "unpublish", says_so_only, "NodeUnpublishVolume"),
    "waits-until-attached": (Attachments, "publish_context", tells_nothing, "attaching"),
}
"""File -> what a wrong kubelet has in place of something, and what the failure says."""


def played(path: Path) -> tuple[Outcome, str]:
    result = run_virtual_case(case_of(load_scenario(path), path), Choice())
    return result.outcome, result.detail


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_scenarios_pass_NODE_219(path: Path) -> None:
    assert played(path) == (Outcome.PASSED, "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_wrong_kubelet_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, wrong, _ = WRONG[path.stem]
    monkeypatch.setattr(place, name, wrong)
    outcome, said = played(path)
    assert outcome is Outcome.FAILED
    assert WRONG[path.stem][3].split()[-1] in said.partition("at:")[0], said


GOOD = """\
id: x
title: t
csi_drivers: {disks.example: {}}
csi_volumes: {data: {driver: disks.example}}
pods: {web: {spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}}
steps:
  - create: web
  - advance: 1
expect:
  - csi_calls: {driver: disks.example, method: NodeStageVolume}
    says: no
"""
FAULT = "- csi_fault: {driver: disks.example, on: NodeStageVolume, "


def test_what_it_needs_follows_from_its_words() -> None:
    needs = needs_of(read_scenario(parse_yaml(GOOD, "x.yaml")))
    assert needs == {Feature.API, Feature.DEVICE_PLUGINS}


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        ("- advance: 1", "- csi_fault: {driver: dsks.example, on: NodeStageVolume, hangs: {}}",
         "8:16: steps[1].csi_fault: no 'dsks.example' in `csi_drivers`, which has: disks.example;"
         " did you mean disks.example?"),
        ("- advance: 1", "- csi_fault: {driver: disks.example, on: NodeStagVolume, hangs: {}}",
         "8:44: steps[1].csi_fault.on: wanted one of GetPluginInfo, "),
        ("- advance: 1", f"{FAULT}fails: {{code: NOTFOUND}}}}",
         "8:75: steps[1].csi_fault.fails.code: 'NOTFOUND' is no gRPC status code of an error;"),
        ("- advance: 1", f"{FAULT}maybe: true}}",
         "8:16: steps[1].csi_fault: wanted exactly one of fails, delays, hangs, loses_answer,"),
        ("- advance: 1", f"{FAULT}volume: dat, hangs: {{}}}}",
         "8:16: steps[1].csi_fault: no 'dat' in `csi_volumes`, which has: data; did you mean"),
        ("- advance: 1",
         "- csi_fault: {driver: disks.example, on: NodeGetInfo, volume: data, hangs: {}}",
         "8:16: steps[1].csi_fault: volume: NodeGetInfo is not about one volume"),
        ("- advance: 1", "- csi_driver: {name: disks.example, do: start}",
         "8:5: steps[1]: csi_driver: start: it runs already"),
        ("- advance: 1", "- csi_driver: {name: disks.example}",
         "8:17: steps[1].csi_driver: wanted at least one of: do, set"),
        ("- advance: 1", "- dies_at: {on: NodePublishVolume}",
         "8:14: steps[1].dies_at: driver: NodePublishVolume is one to a CSI driver: say which"),
        ("- advance: 1", "- dies_at: {on: StopContainer, driver: disks.example}",
         "8:42: steps[1].dies_at.driver: StopContainer is none to one"),
        ("- advance: 1", "- dies_at: {on: NodePublishVolum, driver: disks.example}",
         "8:19: steps[1].dies_at.on: neither the CRI nor a CSI driver has a method "
         "'NodePublishVolum'; did you mean NodePublishVolume?"),
        ("- advance: 1", "- attach: dta", "8:5: steps[1]: no 'dta' in `csi_volumes`"),
        ("claimName: data", "claimName: dat",
         "5:13: pods.web: volume v: no 'dat' in `csi_volumes`, which has: data; did you"),
        ("persistentVolumeClaim: {claimName: data}", "csi: {driver: other.example}",
         "5:13: pods.web: volume v: no 'other.example' in `csi_drivers`, which has: disks.example"),
        ("disks.example: {}", "disks.example: {spec: {fsGroupPolic: File}}",
         "3:30: csi_drivers.disks.example: spec: no field 'fsGroupPolic' in CSIDriverSpec;"),
        ("disks.example: {}", "disks.example: {spec: {fsGroupPolicy: Files}}",
         "3:30: csi_drivers.disks.example: spec.fsGroupPolicy: 'Files' is none of "),
        ("disks.example: {}", "disks.example: {capabilities: [STAGE]}",
         "3:46: csi_drivers.disks.example.capabilities[0]: wanted one of EXPAND_VOLUME,"),
        ("driver: disks.example}}\npods", "driver: disks.example, source: {fsTyp: x}}}\npods",
         "4:21: csi_volumes.data: source: no field 'fsTyp' in CSIPersistentVolumeSource;"),
        ("method: NodeStageVolume", "method: NodeStageVolume, request: {volum_id: x}",
         "10:16: expect[0].csi_calls: request: no field 'volum_id' in NodeStageVolumeRequest"),
        ("method: NodeStageVolume", "method: NodeStageVolume, failed: false, code: INTERNAL",
         "10:16: expect[0].csi_calls: code: calls that did not fail have none"),
        ("method: NodeStageVolume", "method: NodeStageVolume, count: 0",
         "10:5: expect[0]: this holds at once"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(there: str, instead: str, told: str) -> None:
    assert there in GOOD
    text = GOOD.replace(there, instead, 1)
    if told.startswith("10:5"):
        text = text.replace("  - advance: 1\n", "")
        told = told.replace("10:5", "9:5")
    with pytest.raises(ScriptError) as caught:
        read_scenario(parse_yaml(text, "f.yaml"))
    assert any(error.startswith(f"f.yaml:{told}") for error in caught.value.errors), caught.value


def test_a_claim_that_a_step_makes_is_one() -> None:
    claim = "{plural: persistentvolumeclaims, manifest: {metadata: {name: other}}}"
    text = GOOD.replace("claimName: data", "claimName: other")
    text = text.replace("- advance: 1", f"- create_object: {claim}")
    assert read_scenario(parse_yaml(text, "f.yaml")).id == "x"
