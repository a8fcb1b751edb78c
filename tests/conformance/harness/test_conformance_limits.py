"""The table of limits and tolerances."""

from kubelet_conformance.harness.limits import restart_after


def test_restart_tolerances_BACK_011() -> None:
    """From d to 1.5 d (steps of at most 60 s), plus reading the queue and the relists."""
    assert 10.0 in restart_after(10)
    assert 9.9 not in restart_after(10)
    assert 17.9 in restart_after(10)
    assert 300 + 30 in restart_after(300)
    assert 300 + 40 not in restart_after(300)
    assert 1.0 in restart_after(0)
