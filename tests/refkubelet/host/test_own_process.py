"""What this process may do: files, and the kernel's choice when memory is short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from refkubelet.host.own_process import set_oom_score_adj

FILES = """
import resource
from refkubelet.host.own_process import allow_files
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 100))
print(allow_files(80), resource.getrlimit(resource.RLIMIT_NOFILE))
print(allow_files(10 ** 12), resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 80)
"""


def test_so_many_files_may_be_open() -> None:
    done = subprocess.run([sys.executable, "-c", FILES], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == " (80, 80)"
    assert second.endswith(" are allowed True")  # who may not raise it has all there is


def test_the_score_is_written(tmp_path: Path) -> None:
    file = tmp_path / "oom_score_adj"
    assert set_oom_score_adj(-5, file) == ""
    assert file.read_text() == "-5"


def test_who_may_not_is_told_so(tmp_path: Path) -> None:
    assert set_oom_score_adj(-5, tmp_path / "none" / "x") == "no such file or directory"
