"""How tables are read that commands make of what upstream says (`tools/upstream_tables.py`)."""

from __future__ import annotations

from pathlib import Path


def table_lines(module: str, name: str) -> list[str]:
    """The lines, without the head, of the table `name` that lies beside a module (`__file__`)."""
    text = Path(module).with_name(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]
