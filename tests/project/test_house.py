"""What `tools/house.py` counts, and what must stay at none."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Mapping
from pathlib import Path

import pytest

HOUSE = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "house.py"), run_name="house")
FIELDS = "".join(f"    field_{n}: int\n" for n in range(16))


@pytest.fixture(scope="module")
def parsed() -> Mapping[str, ast.Module]:
    modules: Mapping[str, ast.Module] = HOUSE["modules"](Path(__file__).parents[2])
    return modules


def test_no_function_is_long_and_no_record_is_a_bag(parsed: Mapping[str, ast.Module]) -> None:
    product = {p: m for p, m in parsed.items() if not p.startswith(HOUSE["NOT_PRODUCT"])}
    assert len(product) > 1000
    for finds in ("long_functions", "large_records"):
        found = {p: names for p, m in product.items() if (names := list(HOUSE[finds](m)))}
        assert found == {}, finds


def test_what_a_record_mirrors_is_there_and_large(parsed: Mapping[str, ast.Module]) -> None:
    large = {
        node.name
        for module in parsed.values()
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
        and sum(isinstance(part, ast.AnnAssign) for part in node.body) > HOUSE["MOST_FIELDS"]
    }
    assert HOUSE["MIRRORS"].keys() - large == set()


def test_a_bag_is_found() -> None:
    assert list(HOUSE["large_records"](ast.parse(f"class Bag:\n{FIELDS}"))) == ["Bag"]
    assert list(HOUSE["large_records"](ast.parse(f"class Shape(Struct):\n{FIELDS}"))) == []


def test_a_long_function_is_found() -> None:
    body = "    x = 1\n"
    assert list(HOUSE["long_functions"](ast.parse("def f():\n" + 50 * body))) == ["f"]
    assert list(HOUSE["long_functions"](ast.parse("async def f():\n" + 49 * body))) == []
