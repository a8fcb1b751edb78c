"""The pods that the node should run, and their mirrors (MIRR-001, MIRR-020, MIRR-031..034)."""

from __future__ import annotations

from pods import make_pod

from refkubelet.model.pod import CONFIG_MIRROR
from refkubelet.pods.manager import PodManager

MIRROR = {"annotations": {CONFIG_MIRROR: "x"}}
STATIC = make_pod(name="a", uid="static", static=True)
OF_STATIC = make_pod(name="a", uid="mirror", meta=MIRROR)
ORDINARY = make_pod(name="b", uid="b")


def manager(*pods: object) -> PodManager:
    made = PodManager()
    for pod in pods:
        made.update(pod)  # type: ignore[arg-type]
    return made


def test_mirrors_are_not_among_the_pods_MIRR_001_MIRR_020() -> None:
    known = manager(OF_STATIC, STATIC, ORDINARY)
    assert known.pods() == (STATIC, ORDINARY)
    assert known.pods_and_mirrors() == (STATIC, ORDINARY, OF_STATIC)
    assert known.pods() is known.pods()
    assert known.pods_and_mirrors() is known.pods_and_mirrors()
    assert (known.get("static"), known.get("mirror"), known.get("x")) == (STATIC, None, None)


def test_an_empty_manager_has_nothing() -> None:
    known = manager()
    assert known.pods() == known.pods_and_mirrors() == known.orphan_mirrors() == ()


def test_what_is_removed_is_gone_from_both_lists() -> None:
    for gone in (STATIC, OF_STATIC):
        known = manager(STATIC, OF_STATIC, ORDINARY)
        assert len(known.pods_and_mirrors()) == len((*known.pods(), OF_STATIC)) == 3
        known.remove(gone)
        known.remove(gone)
        left = [pod for pod in (STATIC, ORDINARY, OF_STATIC) if pod is not gone]
        assert list(known.pods_and_mirrors()) == left
        assert list(known.pods()) == [pod for pod in left if pod is not OF_STATIC]


def test_a_static_pod_and_its_mirror_find_each_other_MIRR_020_MIRR_031() -> None:
    known = manager(STATIC, OF_STATIC, ORDINARY)
    assert known.mirror_of(STATIC) is OF_STATIC
    assert known.static_of(OF_STATIC) is STATIC
    assert known.mirror_of(ORDINARY) is None
    assert manager(STATIC).mirror_of(STATIC) is None
    assert manager(OF_STATIC).static_of(OF_STATIC) is None


def test_an_ordinary_pod_of_the_name_is_no_static_pod_MIRR_031_MIRR_033() -> None:
    ordinary = make_pod(name="a", uid="o")
    known = manager(ordinary, OF_STATIC)
    assert known.static_of(OF_STATIC) is None
    assert known.mirror_of(ordinary) is None
    assert known.orphan_mirrors() == ()
    assert known.translate_uid("mirror") == "mirror"
    known.remove(ordinary)
    assert known.orphan_mirrors() == (OF_STATIC,)


def test_uids_of_mirrors_are_translated_MIRR_034() -> None:
    for pods in ((STATIC, OF_STATIC), (OF_STATIC, STATIC)):
        known = manager(*pods)
        assert [known.translate_uid(uid) for uid in ("mirror", "static", "x")] == [
            *("static", "static", "x"),
        ]
        known.remove(STATIC)
        assert known.translate_uid("mirror") == "static"
        known.remove(OF_STATIC)
        assert known.translate_uid("mirror") == "mirror"


def test_the_last_pod_of_a_name_owns_it_SRC_067() -> None:
    newer = make_pod(name="a", uid="newer", static=True)
    known = manager(STATIC, OF_STATIC, newer)
    assert known.static_of(OF_STATIC) is newer
    known.remove(STATIC)
    assert known.static_of(OF_STATIC) is newer
    known.remove(newer)
    assert known.static_of(OF_STATIC) is None
