"""Many imports at once, without the collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from simclock.start_up import many_imports

NAME = "a_module_of_this_test"


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector is on and looks through everything, before and after."""
    gc.unfreeze()
    yield
    gc.enable()
    gc.unfreeze()
    sys.modules.pop(NAME, None)


def test_it_is_off_meanwhile_and_does_not_look_through_what_was_imported() -> None:
    with many_imports():
        assert not gc.isenabled()
        sys.modules[NAME] = ModuleType(NAME)
    assert gc.isenabled()
    assert gc.get_freeze_count()


def test_nothing_is_left_out_where_nothing_was_imported() -> None:
    with many_imports():
        pass
    assert gc.isenabled()
    assert not gc.get_freeze_count()


def test_one_that_is_off_stays_off() -> None:
    gc.disable()
    with many_imports():
        pass
    assert not gc.isenabled()
