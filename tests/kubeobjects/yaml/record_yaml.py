"""Records what Kubernetes makes of many texts in YAML.

python tests/kubeobjects/yaml/record_yaml.py VERSION PROGRAM

Asks a program that is built of Kubernetes' own code and answers each line {"Yaml": text} with
{"json": text} or {"error": text}, as sigs.k8s.io/yaml gives them, which kubelet and API server use.
Writes tests/data/kubeobjects/yaml.jsonl: a line with the version, and a line [text, value] or
[text, null, error] for each text.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from yaml_texts import texts

KEPT: Final = Path(__file__).parents[2] / "data" / "kubeobjects" / "yaml.jsonl"


def ask(program: str, asked: list[str]) -> list[dict[str, str]]:
    """The program's answers in the order of the texts."""
    lines = "".join(json.dumps({"Yaml": text}) + "\n" for text in asked)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if len(answers) != len(asked):
        raise SystemExit(f"{len(asked)} texts, but {len(answers)} answers")
    return answers


def kept(text: str, answer: dict[str, str]) -> list[Any]:
    """What is written of a text."""
    if "error" in answer:
        return [text, None, answer["error"]]
    return [text, json.loads(answer["json"])]


def record(version: str, program: str) -> None:
    """Ask the program about all texts, and write its answers."""
    asked = list(texts())
    answers = map(kept, asked, ask(program, asked))
    KEPT.parent.mkdir(exist_ok=True)
    lines = [{"kubernetes": version}, *answers]
    KEPT.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    print(f"{len(asked)} texts in {KEPT}")


if __name__ == "__main__":
    record(*sys.argv[1:3])
