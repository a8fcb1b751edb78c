"""The benchmarks are scripts beside the packages; their modules are imported from there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
