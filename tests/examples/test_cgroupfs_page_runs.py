"""What users copy from docs/cgroupfs.md works, without this project's configuration."""

from __future__ import annotations

import re
from pathlib import Path

from test_examples_run import ROOT, run_pytest

from fakecri.cgroupfs.outside import why_no_mount

PAGE = (ROOT / "docs/cgroupfs.md").read_text()


def test_the_python_blocks_of_the_cgroupfs_page_pass(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n# (test_\w+\.py)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == PAGE.count("```python\n") == 4
    for name, block in blocks:
        (tmp_path / name).write_text(block)
    told = run_pytest(tmp_path, "-p", "no:asyncio", "-W", "error", ".")
    passed, skipped = re.search(r"(\d+) passed(?:, (\d+) skipped)?", told).groups("0")
    assert int(passed) + int(skipped) == PAGE.count("\ndef test_"), told
    if not why_no_mount():
        assert skipped == "0", told
