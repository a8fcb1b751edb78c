"""Where tests find what lies in the repository beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"
GOLDEN: Final = DATA / "golden"
DOCS: Final = ROOT / "docs"
SPEC: Final = DOCS / "spec"
