"""Which unit tests notice a wrong kubelet: forks of one pytest exchange its functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

FILE = "tests/refkubelet/kuberuntime/decisions/test_backoff.py"
KEY = f"{FILE}::test_key_changes_with_image_and_resources_only_BACK_005"
SERIES = f"{FILE}::test_series_of_an_instantly_failing_container_BACK_001"
EXCHANGES_A_FUNCTION = "backoff/key-without-image"
CHANGES_A_CONSTANT = "backoff/first-delay-doubled"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_fork_tells_which_tests_fail_on_the_mutant(tmp_path: Path) -> None:
    plan, told = tmp_path / "plan.json", tmp_path / "told.jsonl"
    wanted = {EXCHANGES_A_FUNCTION: [KEY, SERIES], CHANGES_A_CONSTANT: [SERIES]}
    plan.write_text(json.dumps({"tests": wanted, "jobs": 2}))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "mutants"), str(ROOT)]),
        "REFKUBELET_MUTANTS": str(plan),
        "REFKUBELET_MUTANT_FAILED": str(told),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutant_plugin", FILE]
    subprocess.run([*command, "-p", "no:cacheprovider"], check=True, cwd=ROOT, env=environment)
    answers = {
        line["mutant"]: line["failed"] for line in map(json.loads, told.read_text().splitlines())
    }
    assert answers == {EXCHANGES_A_FUNCTION: [KEY], CHANGES_A_CONSTANT: None}
