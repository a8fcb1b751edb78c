"""What users copy from docs/cgroupfs.md works, without this project's configuration."""

from __future__ import annotations

import re
from pathlib import Path

from test_examples_run import ROOT, run_pytest

PAGE = (ROOT / "docs/cgroupfs.md").read_text()


def test_the_python_blocks_of_the_cgroupfs_page_pass(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n# (test_\w+\.py)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == PAGE.count("```python\n") == 4
    for name, block in blocks:
        (tmp_path / name).write_text(block)
    tests = PAGE.count("\ndef test_")
    assert f"{tests} passed" in run_pytest(tmp_path, "-p", "no:asyncio", "-W", "error", ".")
