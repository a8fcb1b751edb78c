"""What a pod of many containers costs grows with their number, and not with its square: counted in
lines that are executed, so that no busy machine decides."""

from __future__ import annotations

import sys
from collections import Counter
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import pytest
from node_world import Node, on_node
from pods import container, manifest

import refkubelet
from refkubelet.allocation import state

HERE: Final = str(Path(refkubelet.__file__).parent)
FEW: Final = 40
SLACK: Final = 400
"""Lines that may come in addition: what happens once more or less."""

Lines = Counter[CodeType]


class LineCounter:
    """Counts the lines that functions of refkubelet execute, while it is entered."""

    def __init__(self) -> None:
        self.lines: Lines = Counter()

    def __enter__(self) -> LineCounter:
        sys.settrace(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, detail: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(HERE) else None

    def _line(self, frame: FrameType, event: str, detail: Any) -> Any:
        self.lines[frame.f_code] += 1
        return self._line


async def life(node: Node, count: int) -> None:
    """A pod of so many containers starts, one of them ends and starts again, another kubelet finds
    them, and the pod is deleted."""
    names = [f"c{n}" for n in range(count)]
    pod = manifest(*[container(name, cpu="1m/2m") for name in names], name="big")
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    await node.clock.sleep(1)
    await node.create(pod)
    await node.until_live("big", "Running")
    await node.clock.sleep(25)
    node.cri.exit(pod="big")
    await node.clock.sleep(15)
    await node.restart()
    await node.clock.sleep(5)
    assert len(node.cri.containers(pod="big")) > count
    await node.delete("big")
    await node.until_gone("big")
    await node.clock.sleep(5)


def forget_answers() -> None:
    """Empty the caches of refkubelet: what an earlier test has asked must not make this one's
    containers cheaper."""
    names = [name for name in sys.modules if name.partition(".")[0] == "refkubelet"]
    for name in names:
        for each in vars(sys.modules[name]).values():
            if isinstance(each, _lru_cache_wrapper):
                each.cache_clear()


def lines_of_a_life(directory: Path, count: int) -> Lines:
    """The lines that a pod of so many containers costs, by function."""
    directory.mkdir()
    forget_answers()
    with LineCounter() as counter:
        on_node(lambda node: life(node, count), directory, api=True)
    return counter.lines


def test_many_containers_cost_no_squares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LARGE", 1024)  # as if there were a thousand containers
    few = lines_of_a_life(tmp_path / "few", FEW)
    many = lines_of_a_life(tmp_path / "many", 2 * FEW)
    squares = {
        f"{code.co_filename.removeprefix(HERE)}:{code.co_firstlineno} {code.co_name}": (
            few[code],
            lines,
        )
        for code, lines in many.items()
        if lines > 2.5 * few[code] + SLACK
    }
    assert squares == {}
    assert sum(many.values()) < 2.2 * sum(few.values())
