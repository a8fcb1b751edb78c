"""Asks a program with Kubernetes' own code what it says of the broken pods, and keeps the answers.

    python tests/kubeobjects/pods/ask.py PROGRAM VERSION

The program reads lines `{"Pod": {...}}` and `{"Static": {...}}`, a pod to create and a pod of a
kubelet's own, and writes a line for each: `{"pod": {...}}`, or `{"causes": [{"field", "message",
"reason"}]}`, or `{"decode": "why"}` for what is no pod at all (such cases are left out: types are
checked elsewhere).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import bare_pods
import broken_containers
import broken_fields
import broken_volumes
from pod_breaking import TEXTS
from pod_changes import changed

BASES: Final = {
    **broken_fields.BASES,
    **broken_containers.BASES,
    "volumes": broken_volumes.VOLUMES,
}
POLICY: Final = "disallowed by cluster policy"
"""How causes end of what an API server and a kubelet are told to allow, and the program is not."""
DATA: Final = Path(__file__).parents[2] / "data/kubeobjects"


def main() -> None:
    program, version = sys.argv[1:]
    for name, cases in (
        ("pod_containers", broken_containers.cases()),
        ("pod_fields", broken_fields.cases()),
        ("pod_volumes", broken_volumes.cases()),
    ):
        found = answers(program, cases)
        bases = {base: BASES[base] for base in dict.fromkeys(one["base"] for one in found)}
        keep(name, [{"kubernetes": version, "bases": bases}, *found])
    keep("pod_defaults", [{"kubernetes": version}, *completed(program, [*bare_pods.pods()])])
    head = {"kubernetes": version, "bases": {"plain": broken_fields.PLAIN}}
    keep("pod_prepared", [head, *prepared(program)])


def keep(name: str, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (DATA / f"{name}.jsonl").write_text(text)
    print(f"{name}: {len(lines) - 1} cases, {len(text)} bytes")


def told(program: str, questions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The program's answers."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([program], input=lines, capture_output=True, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def completed(program: str, pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each pod, and its spec with the defaults of a kubelet's own pods."""
    asked = told(program, ({"Static": pod} for pod in pods))
    return [
        {"pod": pod, "spec": answer["pod"]["spec"]} for pod, answer in zip(pods, asked, strict=True)
    ]


def prepared(program: str) -> list[dict[str, Any]]:
    """The changes of right pods, and the specs that an API server makes of these."""
    made = [changed(broken_fields.PLAIN, changes) for changes in broken_fields.PREPARED]
    asked = told(program, ({"Pod": pod} for pod in made))
    return [
        {"changes": changes, "spec": answer["pod"]["spec"]}
        for changes, answer in zip(broken_fields.PREPARED, asked, strict=True)
        if "pod" in answer
    ]


def answers(program: str, cases: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Base, changes and causes of each case. `static` is there only where a kubelet's own pod has
    other causes than a created one. Of the usual changes of one place, the first that nobody minds
    is kept."""
    asked = {json.dumps([base, changes]): (base, changes) for base, changes in cases}
    made = [changed(BASES[base], changes) for base, changes in asked.values()]
    both = told(program, ({kind: pod} for pod in made for kind in ("Pod", "Static")))
    kept: list[dict[str, Any]] = []
    fine: set[tuple[str, ...]] = set()
    for (base, changes), of_api, of_kubelet in zip(
        asked.values(), both[::2], both[1::2], strict=True
    ):
        if "decode" in of_api or "panic" in of_api or "panic" in of_kubelet:
            continue
        place, value = (base, *changes), next(iter(changes.values()), None)
        if "pod" in of_api and "pod" in of_kubelet and value in (None, [], {}, *TEXTS):
            if place in fine:
                continue
            fine.add(place)
        case = {"base": base, "changes": changes, "causes": _causes(of_api)}
        static = _causes(of_kubelet)
        kept.append(case if static == case["causes"] else {**case, "static": static})
    return kept


def _causes(answer: Mapping[str, Any]) -> list[list[str]] | None:
    """Field, message and reason of each cause, in the order of Kubernetes, which has none among the
    entries of a map. None: the refusal is not about fields, as that of another namespace."""
    if "pod" not in answer and not any(one["field"] for one in answer["causes"]):
        return None
    return [
        [one["field"], one["message"], one["reason"]]
        for one in answer.get("causes", ())
        if not one["message"].endswith(POLICY)
    ]


if __name__ == "__main__":
    main()
