"""The log in JSON, and what -v tells of syncs."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from pods import make_pod
from runtime_doubles import record, sandbox, status
from sync_bench import Bench

from refkubelet.cli import main
from refkubelet.kuberuntime.decisions.pod_actions import ContainerKill, KillReason, PodActions
from refkubelet.kuberuntime.decisions.told import told
from refkubelet.model.pod import log_fields
from refkubelet.telemetry.log_format import JsonFormatter

WHOLE = "refkubelet.kuberuntime"


def formatted(level: int, text: str, *values: object, **more: object) -> dict[str, object]:
    log = logging.getLogger("refkubelet.test")
    made = log.makeRecord(log.name, level, "/x/sync.py", 7, text, values, None, extra=more or None)
    made.created = 1_700_000_000.1234
    line = JsonFormatter().format(made)
    assert "\n" not in line
    return dict(json.loads(line))


def test_a_line_of_json_has_the_fields_of_the_kubelets() -> None:
    pod = make_pod("web")
    assert formatted(logging.INFO, "sync of %s", "ünï", **log_fields(pod)) == {
        "ts": 1_700_000_000_123.4,
        "caller": "sync.py:7",
        "logger": "refkubelet.test",
        "msg": "sync of ünï",
        "v": 1,
        "pod": {
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "uid": pod.metadata.uid,
        },
    }
    assert "v" not in formatted(logging.ERROR, "gone")
    assert formatted(logging.ERROR, "gone")["level"] == "error"


def test_an_exception_is_one_line_with_its_traceback() -> None:
    try:
        raise OSError("no room")
    except OSError:
        found = sys.exc_info()
    made = logging.LogRecord("x", logging.ERROR, "/x/a.py", 1, "failed", (), found)
    told_of = json.loads(JsonFormatter().format(made))
    assert told_of["err"].startswith("OSError('no room')\nTraceback (most recent call last):")


def test_an_unknown_format_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--logging-format", "xml"])
    assert "argument --logging-format: invalid choice: 'xml'" in capsys.readouterr().err


def test_changes_are_told_in_their_order_LIFE_130() -> None:
    pod = make_pod("a", "b")
    kill = ContainerKill("id", "b", KillReason.LIVENESS, "text")
    actions = PodActions(
        create_sandbox=True,
        attempt=2,
        kills=(kill,),
        containers_to_start=tuple(pod.spec.containers),
    )
    assert told(actions) == (
        "kill b: failed liveness probe (LIFE-116); new sandbox, attempt 2 (LIFE-100); "
        "start a, b (LIFE-114)"
    )
    assert told(PodActions(sandbox_id="s", attempt=3)) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kill_pod": True}, "kill the pod (LIFE-111)"),
        (
            {"resets": tuple(record(make_pod(n), n) for n in ("b", "a", "b"))},
            "restart all of a, b (LIFE-125)",
        ),
        ({"ephemeral_to_start": make_pod("e").spec.containers}, "start ephemeral e (LIFE-112)"),
        ({"init_to_start": make_pod("i", "j").spec.containers}, "start init i, j (LIFE-120)"),
        ({"updates": make_pod("u").spec.containers}, "resize (CG-065)"),
        ({"resizes_by_restart": True}, "resize (CG-065)"),
        ({"resizes_pod_level": True}, "resize (CG-065)"),
    ],
)
def test_each_change_has_its_words_LIFE_130(changes: Any, words: str) -> None:
    assert told(PodActions(**changes)) == words
    whole = {**changes, "containers_to_start": make_pod("z").spec.containers}
    assert told(PodActions(**whole)) == f"{words}; start z (LIFE-114)"


@pytest.mark.virtual_time
async def test_a_sync_is_told_when_it_changes_something(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, WHOLE)
    bench, pod = Bench(tmp_path), make_pod("web")
    await bench.sync(pod, status(sandboxes=()))
    first, second = caplog.messages
    name = f"{pod.metadata.namespace}/{pod.metadata.name} ({pod.metadata.uid})"
    assert first == (
        f"sync of {name}: kill the pod (LIFE-111); new sandbox, attempt 0 (LIFE-100); "
        "start web (LIFE-114)"
    )
    assert second.startswith(f"{name}: container web has started as ")
    assert caplog.records[0].pod["name"] == pod.metadata.name  # type: ignore[attr-defined]
    caplog.clear()
    await bench.sync(pod, status(record(pod, "web"), sandboxes=(sandbox(),)))
    assert caplog.messages == []
