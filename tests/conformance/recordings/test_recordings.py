"""Recordings are read, and every recorded run of a kubelet holds all laws that can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_files import unpack
from golden_recording import Recording as Golden
from golden_recording import recordings

from fakecri.recording.recorded import RecordError
from kubelet_conformance.cli import main
from kubelet_conformance.laws import LAWS
from kubelet_conformance.recordings import asking, breaches_of, left_out, read_recording
from kubelet_conformance.recordings.history import recording_of

CALL = '{"t_start": 0, "t_end": 1, "method": "%s", "request": {}, "response": %s}'


@pytest.mark.parametrize("golden", recordings(), ids=lambda golden: golden.name)
def test_each_recorded_run_holds_the_laws(golden: Golden, tmp_path: Path) -> None:
    folder = unpack(golden.scenario, tmp_path) / golden.name.partition("/")[2]
    recording = read_recording(folder, config=golden.configuration())
    assert [str(breach) for breach in breaches_of(recording)] == []
    assert left_out(recording) == asking.NEVER
    alone = tmp_path / "calls.jsonl"  # without pods beside it
    alone.write_text(golden.text("cri.jsonl"))
    calls = read_recording(alone)
    assert calls.known == {"ends"}
    assert [str(breach) for breach in breaches_of(calls)] == []


def test_the_laws_have_names_that_laws_have() -> None:
    assert {*asking.WANTS, *asking.NEVER} == {law.name for law in LAWS}


def test_what_a_recording_lacks_is_named() -> None:
    nothing = left_out(recording_of([], evented=True))
    assert "events of the runtime" in nothing["one-running"]
    assert nothing["policy-obeyed"] == "the pods (pods.jsonl beside cri.jsonl)"
    assert "the pods" in nothing["backed-off"]
    assert "--kubelet-config" in nothing["backed-off"]
    assert "one-sandbox" not in nothing
    assert "backed-off" in left_out(recording_of([], config={}))


def test_a_kubelet_that_listens_to_events_is_told(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    listens = '{"t_start": 0, "t_end": 1, "method": "GetContainerEvents", "request": {}}'
    path.write_text(f"{listens}\n{CALL % ('Version', '{}')}\n")
    recording = read_recording(path)
    assert recording.known == set()
    assert [call.method for call in recording.history.calls] == ["Version", "GetContainerEvents"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "", "it is empty"),
        ("a.jsonl", "{}\n", "a.jsonl:1: wanted an object with method"),
        ("a.jsonl", CALL % ("Version", "{}") + "\n{", "a.jsonl:2: no JSON"),
        ("a.jsonl", "\n[]", "a.jsonl:2: wanted an object"),
        ("a.jsonl", CALL % ("Boot", "{}"), "a.jsonl:1: method: CRI v1 has no method 'Boot'"),
        (
            "a.jsonl",
            CALL % ("Version", '"(same as the previous one for this request)"'),
            "a.jsonl:1: it repeats a line that is not there",
        ),
        ("a.jsonl", None, "no such file or directory"),
        ("pods.jsonl", "{", "pods.jsonl:1: no JSON"),
        ("pods.jsonl", "\n7", "pods.jsonl:2: wanted an object, got int"),
        ("pods.jsonl", '{"uid": "u"}', "pods.jsonl:1: wanted a row of a pod with t and uid"),
        ("pods.jsonl", '{"uid": "u", "t": 0, "status": 7}', "pods.jsonl:1: no row of a pod"),
        ("pods.jsonl", '{"uid": "u", "t": 0, "spec": {}}', "no row of a pod: Object missing"),
        ("pods.jsonl", '{"uid": "u", "t": 0, "status": {}}', "pods.jsonl:1: no row of a pod"),
        (
            "pods.jsonl",
            '{"uid": "u", "t": 0, "pod": "web", "status": {"conditions": [{}]}}',
            "pods.jsonl:1: no row of a pod: Object missing required field",
        ),
    ],
)
def test_a_bad_file_is_one_sentence_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None, message: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    if name == "pods.jsonl":
        path = tmp_path / "cri.jsonl"
        path.write_text(CALL % ("Version", "{}"))
    assert main(["check-trace", str(path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert told.err.count("\n") == 1
    with pytest.raises(RecordError):
        read_recording(path)


@pytest.mark.parametrize("text", ["{", "- a", "kind: Pod", None])
def test_a_configuration_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    calls, config = tmp_path / "calls.jsonl", tmp_path / "kubelet.yaml"
    calls.write_text(CALL % ("Version", "{}"))
    if text is not None:
        config.write_text(text)
    assert main(["check-trace", str(calls), "--kubelet-config", str(config)]) == 2
    assert "kubelet.yaml" in capsys.readouterr().err


def test_the_command_says_what_it_has_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpack("s01", tmp_path)
    assert main(["check-trace", "-v", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "24 laws asked, 0 broken" in told
    assert "asked: one-running, one-sandbox" in told
    assert "for want of the kubelet's configuration (--kubelet-config): backed-off" in told
