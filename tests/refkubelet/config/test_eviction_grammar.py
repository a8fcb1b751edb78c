"""Thresholds of a configuration: how they are written, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from eviction_world import hard, soft
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.config.eviction_grammar import (
    WRONG_FORMAT,
    WRONG_NUMBER,
    WRONG_SUFFIX,
    ThresholdError,
    duration_complaint,
    parse_thresholds,
    quantity_complaint,
)
from refkubelet.config.eviction_thresholds import ThresholdValue
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.eviction.cycle import (
    EvictionConfig,
)


@pytest.mark.parametrize("where", range(4))
def test_unknown_signals_are_refused_EVIC_001(where: int) -> None:
    maps: list[dict[str, str]] = [{}, {}, {}, {}]
    maps[where] = {"memory.free": "1s" if where == 2 else "1Mi"}
    with pytest.raises(ThresholdError, match=r"^unsupported eviction signal memory.free$"):
        parse_thresholds(*maps)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1%", "eviction percentage threshold nodefs.available must be >= 0%: -1%"),
        ("101%", "eviction percentage threshold nodefs.available must be <= 100%: 101%"),
        ("0", "eviction threshold nodefs.available must be positive: 0"),
        ("-5Mi", "eviction threshold nodefs.available must be positive: -5Mi"),
        ("lots", "evictionHard: nodefs.available: quantities must match the regular expression"),
        ("", "evictionHard: nodefs.available: quantities must match the regular expression '^("),
        ("1K", "evictionHard: nodefs.available: unable to parse quantity's suffix; wanted"),
        ("Ei", "evictionHard: nodefs.available: unable to parse numeric part of quantity; w"),
        ("Mi", "eviction threshold nodefs.available must be positive: 0"),
        ("x%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "x": invalid syn'),
        ("+nan%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "+nan": inval'),
        ("1__0%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "1__0": inval'),
        ("1_%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "1_": invalid'),
        ("0x1%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "0x1": invalid'),
        ("1e400%", 'evictionHard: nodefs.available: strconv.ParseFloat: parsing "1e400": val'),
        ("Inf%", "eviction percentage threshold nodefs.available must be <= 100%: Inf%"),
        ("-inf%", "eviction percentage threshold nodefs.available must be >= 0%: -inf%"),
    ],
)
def test_wrong_values_EVIC_003(text: str, message: str) -> None:
    with pytest.raises(ThresholdError) as error:
        hard("nodefs.available", text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1_0%", 10),
        ("0x1p-1%", 0),
        ("100.000001%", 100),
        ("1e-46%", 0),
        ("-1e-45%", 0),
        ("10%%", 10),
        ("NaN%", -(2**63)),
    ],
)
def test_percentages_are_floats_of_go_EVIC_003(text: str, amount: int) -> None:
    (threshold,) = parse_thresholds({"nodefs.available": text}, {}, {}, {})
    assert threshold.value.amount(100) == amount


@pytest.mark.parametrize("text", ["0%", "100%"])
def test_switching_one_signal_off_EVIC_003(text: str) -> None:
    assert parse_thresholds({"memory.available": text}, {}, {}, {}) == ()


def test_soft_needs_a_grace_period_EVIC_004() -> None:
    with pytest.raises(ThresholdError, match="grace period must be specified for the soft evic"):
        parse_thresholds({}, {"memory.available": "1Gi"}, {}, {})
    with pytest.raises(ThresholdError, match="invalid eviction grace period specified: -1s"):
        soft("memory.available", "1Gi", "-1s")
    assert parse_thresholds({}, {}, {"memory.available": "1m"}, {}) == ()
    assert soft("memory.available", "1Gi", "0s").hard
    assert not soft("memory.available", "1Gi", "1m30s").hard


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("10", 'time: missing unit in duration "10"'),
        ("1m10", 'time: missing unit in duration "1m10"'),
        ("10 s", 'time: unknown unit " s" in duration "10 s"'),
        ("-1d", 'time: unknown unit "d" in duration "-1d"'),
        ("soon", 'time: invalid duration "soon"'),
        ("", 'time: invalid duration ""'),
        ("+", 'time: invalid duration "+"'),
    ],
)
def test_wrong_grace_periods_EVIC_004(text: str, complaint: str) -> None:
    with pytest.raises(ThresholdError) as error:
        soft("memory.available", "1Gi", text)
    assert str(error.value) == f"evictionSoftGracePeriod: memory.available: {complaint}"


def test_a_soft_threshold_that_is_off_needs_no_grace_period_EVIC_003_EVIC_004() -> None:
    assert parse_thresholds({}, {"memory.available": "0%"}, {}, {}) == ()


def test_allocatable_memory_has_the_hard_thresholds_of_memory_EVIC_008() -> None:
    signal, other = "memory.available", "nodefs.available"
    maps: Any = (
        {signal: "1Gi", other: "5%"},
        {signal: "2Gi"},
        {signal: "1m"},
        {signal: "100Mi"},
    )
    found = parse_thresholds(*maps, enforced=["pods", "kube-reserved"])
    (copy,) = [t for t in found if t.signal == "allocatableMemory.available"]
    hard = found[0]
    assert (copy.value, copy.min_reclaim, copy.hard) == (hard.value, hard.min_reclaim, True)
    assert len(found) == 4
    assert len(parse_thresholds(*maps, enforced=["none"])) == 3
    instant = parse_thresholds(
        {}, {signal: "2Gi"}, soft_grace_period={signal: "0s"}, minimum_reclaim={}, enforced=["pods"]
    )
    assert [t.signal for t in instant] == [signal, "allocatableMemory.available"]


def test_minimum_reclaim_belongs_to_both_kinds_EVIC_005() -> None:
    signal = "memory.available"
    both = parse_thresholds({signal: "1Gi"}, {signal: "2Gi"}, {signal: "1s"}, {signal: "5%"})
    assert [t.min_reclaim for t in both] == [ThresholdValue("5%", percent=5.0)] * 2
    with pytest.raises(ThresholdError, match="must be positive: 0%"):
        hard(signal, "1Gi", "0%")
    with pytest.raises(ThresholdError, match="negative eviction minimum reclaim spec"):
        hard(signal, "1Gi", "-1")


def test_percentages_show_float32_rounding_EVIC_009() -> None:
    assert hard("nodefs.available", "10%").value.amount(107374182400) == 10737418400


@given(st.integers(1, 1 << 45), st.integers(1, 99))
def test_a_percentage_is_close_to_exact_EVIC_009(capacity: int, percent: int) -> None:
    amount = hard("nodefs.available", f"{percent}%").value.amount(capacity)
    assert abs(amount - capacity * percent / 100) <= 1 + capacity * 1e-6


def test_settings_make_a_configuration_EVIC_002_EVIC_007() -> None:
    config = EvictionConfig.of(
        KubeletConfiguration(
            eviction_hard={"memory.available": "100Mi"},
            eviction_pressure_transition_period_s=45,
            enforce_node_allocatable=(),
        )
    )
    assert config.pressure_transition_s == 45
    assert [t.signal for t in config.thresholds] == ["memory.available"]


NUMBER = "wanted a number before the %, such as 10%"
AMOUNT = "wanted a quantity such as 100Mi, or a share such as 10%"


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("evictionHard", "x%", f'strconv.ParseFloat: parsing "x": invalid syntax; {NUMBER}'),
        ("evictionSoft", "1K", f"unable to parse quantity's suffix; {AMOUNT}"),
        ("evictionMinimumReclaim", "x%",
         f'strconv.ParseFloat: parsing "x": invalid syntax; {NUMBER}'),
        ("evictionMinimumReclaim", "Ei", f"unable to parse numeric part of quantity; {AMOUNT}"),
        ("evictionSoftGracePeriod", "10", 'time: missing unit in duration "10"'),
    ],
)  # fmt: skip
def test_the_field_of_a_wrong_value_is_told_EVIC_003(field: str, text: str, why: str) -> None:
    fields = ("evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim")
    maps = [{"memory.available": text} if field == name else {} for name in fields]
    with pytest.raises(ThresholdError) as error:
        parse_thresholds(*maps)
    assert str(error.value) == f"{field}: memory.available: {why}"


def test_what_thresholds_are_made_of_EVIC_003_EVIC_005() -> None:
    hard_one, soft_one = parse_thresholds(
        {"nodefs.available": "1"},
        {"memory.available": "15%"},
        {"memory.available": "1m"},
        {"nodefs.available": "0", "memory.available": "5%"},
    )
    assert hard_one.value == ThresholdValue("1", quantity=1)
    assert (hard_one.grace_s, hard_one.min_reclaim) == (0, ThresholdValue("0", quantity=0))
    assert soft_one.value == ThresholdValue("15%", percent=15.0)
    assert (soft_one.grace_s, soft_one.min_reclaim) == (60, ThresholdValue("5%", percent=5.0))
    assert (soft_one.value.shown(1000), hard_one.value.shown(0)) == ("150", "1")
    assert (soft_one.resource, soft_one.condition) == ("memory", "MemoryPressure")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("+5", 'missing unit in duration "+5"'),
        ("-5", 'missing unit in duration "-5"'),
        ("5s6", 'missing unit in duration "5s6"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        (".5", 'missing unit in duration ".5"'),
        ("", 'invalid duration ""'),
        ("s", 'invalid duration "s"'),
        ("1" * 19, f'missing unit in duration "{"1" * 19}"'),
        ("1" * 20, f'invalid duration "{"1" * 20}"'),
        ('1"\\', r'unknown unit "\"\\" in duration "1\"\\"'),
        ("1\x1f\x7fé", r'unknown unit "\x1f' + "\x7f" + r'\xc3\xa9" in duration "1\x1f' + "\x7f"
         + r'\xc3\xa9"'),
        ("1\udcff", r'unknown unit "\xff" in duration "1\xff"'),
    ],
)  # fmt: skip
def test_what_is_no_duration_EVIC_004(text: str, why: str) -> None:
    assert duration_complaint(text) == f"time: {why}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", WRONG_FORMAT),
        ("lots", WRONG_FORMAT),
        ("1.2.3", WRONG_FORMAT),
        ("1K", WRONG_SUFFIX),
        ("1ee", WRONG_SUFFIX),
        (".", WRONG_NUMBER),
        ("Ei", WRONG_NUMBER),
    ],
)
def test_what_is_no_quantity_EVIC_003(text: str, why: str) -> None:
    assert quantity_complaint(text) == why
