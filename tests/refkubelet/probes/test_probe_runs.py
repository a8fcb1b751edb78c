"""Probe workers in virtual time, against a scripted container."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from probe_world import BAD, EPOCH, OK, World, drain, old_kubelet, rpc_error

from refkubelet.model.probe_results import ProbeResult, ProbeType, ResultManager

pytestmark = pytest.mark.virtual_time


async def test_runs_at_once_and_then_once_per_period_PROBE_004_PROBE_005() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 7, "timeoutSeconds": 3})
    await world.at(122)
    assert world.times_s == [100, 107, 114, 121]
    assert world.calls[0][1:] == ("id0", ("check", "1"), 3)  # PROBE-062
    await world.manager.stop()


async def test_a_young_kubelet_spreads_first_runs_over_a_period_PROBE_004() -> None:
    worlds = [World(0, liveness={"periodSeconds": 10}) for _ in range(2)]
    for world in worlds:
        world.started()
    await asyncio.sleep(40)
    (first, *rest), other = worlds[0].times_s, worlds[1].times_s
    assert 0 < first < 10
    assert rest == [round(first + 10 * i, 3) for i in (1, 2, 3)][: len(rest)]
    assert other == worlds[0].times_s  # one seed, one beat
    for world in worlds:
        await world.manager.stop()


async def test_a_run_longer_than_the_period_swallows_ticks_PROBE_005() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 2})
    world.took_s = 5
    await world.at(121)
    assert world.times_s == [100, 105, 110, 115, 120]
    await world.manager.stop()


async def test_initial_delay_from_the_containers_start_PROBE_016() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5, "initialDelaySeconds": 12})
    await world.at(121)
    assert world.times_s == [115, 120]
    await world.manager.stop()


async def test_liveness_failure_holds_until_a_new_container_PROBE_020() -> None:
    world = await old_kubelet(1, liveness={"periodSeconds": 5, "failureThreshold": 3})
    assert await drain(world.manager.liveness, 2) == [("id0", OK), ("id0", BAD)]
    assert world.times_s == [100, 105, 110]
    await world.at(148)
    assert world.times_s == [100, 105, 110]
    world.restart("id1")
    await world.at(151)
    assert world.times_s == [100, 105, 110, 150]
    assert world.manager.liveness.get("id0") is None
    await world.manager.stop()


async def test_failures_of_the_last_container_count_for_the_next_PROBE_027() -> None:
    world = await old_kubelet(1, liveness={"periodSeconds": 5, "failureThreshold": 3})
    await world.at(106)
    world.restart("id1")
    await world.at(111)
    assert world.times_s == [100, 105, 110]
    assert world.manager.liveness.get("id1") is BAD
    await world.manager.stop()


async def test_every_failure_leaves_one_event_PROBE_081_PROBE_025() -> None:
    world = await old_kubelet(1, liveness={"periodSeconds": 5, "failureThreshold": 2})
    await world.at(130)
    text = "Liveness probe failed: outerr"
    assert world.events == [("Unhealthy", text, "spec.containers{c}")] * 2
    await world.manager.stop()


async def test_startup_gates_and_readiness_follows_at_once_PROBE_017_PROBE_007() -> None:
    world = await old_kubelet(
        1, 1, 0, startup={"periodSeconds": 4}, readiness={"periodSeconds": 60}
    )
    await drain(world.manager.startup, 2)
    assert world.clock.monotonic_s() == 108
    status = world.status("u")
    assert status is not None
    world.manager.trigger_readiness(world.pod, status)
    await drain(world.manager.readiness, 2)
    assert world.clock.monotonic_s() == 108
    await world.at(169)
    assert world.times_s == [100, 104, 108, 108, 168]  # the beat restarted with the trigger
    await world.manager.stop()


async def test_readiness_flips_with_its_thresholds_and_never_holds_PROBE_026_PROBE_036() -> None:
    probe = {"periodSeconds": 1, "failureThreshold": 2, "successThreshold": 2}
    world = await old_kubelet(0, 0, 1, 0, 1, 1, 1, 0, 0, readiness=probe)
    assert await drain(world.manager.readiness, 4) == [
        ("id0", BAD),
        ("id0", OK),
        ("id0", BAD),
        ("id0", OK),
    ]
    assert world.times_s == list(range(100, 109))
    await world.manager.stop()


async def test_termination_stops_liveness_and_leaves_readiness_PROBE_091_PROBE_092() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 5}, readiness={"periodSeconds": 5})
    await world.at(101)
    world.manager.stop_liveness_and_startup(world.pod)
    await world.at(111)
    assert world.times_s == [100, 100, 105, 110]
    world.manager.remove_pod(world.pod)
    await world.at(200)
    assert len(world.calls) == 4
    assert world.manager.readiness.get("id0") is None  # PROBE-094
    assert not world.manager.has_worker("u", "c", ProbeType.READINESS)


async def test_housekeeping_ends_workers_of_other_pods_PROBE_094() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5})
    await world.at(101)
    world.manager.cleanup_pods(["u"])
    await world.at(106)
    world.manager.cleanup_pods([])
    await world.at(130)
    assert world.times_s == [100, 105]


async def test_results_tell_changes_only_and_a_full_queue_blocks_PROBE_031() -> None:
    results = ResultManager()
    for result in (ProbeResult.SUCCESS, ProbeResult.SUCCESS, ProbeResult.FAILURE):
        await results.set("id0", result, "u")
    results.remove("id0")
    assert results.get("id0") is None
    await results.set("id0", ProbeResult.FAILURE, "u")  # initial values are told too
    told = await drain(results, results.updates.qsize())
    assert [result.value for _, result in told] == ["success", "failure", "failure"]
    for number in range(20):
        await results.set(f"id{number}", ProbeResult.SUCCESS, "u")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await results.set("one more", ProbeResult.SUCCESS, "u")


async def test_a_worker_that_waits_for_its_first_run_ends_at_once_PROBE_094() -> None:
    world = World(0, readiness={"periodSeconds": 1000})
    world.started()
    await world.at(1)
    world.manager.remove_pod(world.pod)
    await world.at(2)
    assert not world.manager.has_worker("u", "c", ProbeType.READINESS)
    assert world.times_s == []


async def test_a_finished_pod_ends_its_workers_PROBE_011() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5})
    await world.at(101)
    world.phase = "Succeeded"
    await world.at(130)
    assert world.times_s == [100]


async def test_add_pod_twice_makes_one_worker_PROBE_002() -> None:
    world = await old_kubelet(0, readiness={"periodSeconds": 5})
    world.started()
    await world.at(101)
    assert world.times_s == [100]
    await world.manager.stop()


async def test_a_container_found_running_is_not_unready_at_first_PROBE_051() -> None:
    await asyncio.sleep(100)
    world = World(0, started_s=50, readiness={"periodSeconds": 5})
    assert world.manager.predates_kubelet(EPOCH + timedelta(microseconds=world.started_ns // 1000))
    world.started()
    assert await drain(world.manager.readiness, 1) == [("id0", OK)]
    await world.manager.stop()


async def test_a_broken_run_ends_only_itself_PROBE_083() -> None:
    world = await old_kubelet(RuntimeError("oops"), 0, readiness={"periodSeconds": 5})
    await world.at(111)
    assert world.times_s == [100, 105, 110]
    assert world.manager.readiness.get("id0") is OK
    await world.manager.stop()


async def test_a_run_in_flight_finishes_PROBE_095() -> None:
    world = await old_kubelet(0, 1, liveness={"periodSeconds": 5, "failureThreshold": 1})
    world.took_s = 3
    await world.at(109)
    world.manager.stop_liveness_and_startup(world.pod)
    assert await drain(world.manager.liveness, 2) == [("id0", OK), ("id0", BAD)]
    await world.at(200)
    assert world.times_s == [100, 105]
    assert not world.manager.has_worker("u", "c", ProbeType.LIVENESS)


async def test_probes_of_sidecars_run_to_the_end_PROBE_093() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 5})
    main = world.pod.spec.containers[0]
    side = msgspec.structs.replace(main, name="side", restartPolicy="Always")
    spec = msgspec.structs.replace(world.pod.spec, initContainers=[side])
    pod = msgspec.structs.replace(world.pod, spec=spec)
    await world.at(101)
    await world.manager.stop()
    world.manager.add_pod(pod)
    world.manager.stop_liveness_and_startup(pod)
    await world.at(111)
    assert world.manager.has_worker("u", "side", ProbeType.LIVENESS)
    assert not world.manager.has_worker("u", "c", ProbeType.LIVENESS)
    world.manager.remove_pod(pod)
    await world.at(120)
    assert not world.manager.has_worker("u", "side", ProbeType.LIVENESS)


async def test_a_container_is_seen_at_the_next_tick_PROBE_006() -> None:
    world = await old_kubelet(0, liveness={"periodSeconds": 5})
    await world.at(103)
    world.restart("id1")
    await world.at(106)
    assert [(round(at_s), name) for at_s, name, *_ in world.calls] == [(100, "id0"), (105, "id1")]
    await world.manager.stop()


async def test_triggers_before_the_first_run_change_nothing_PROBE_004_PROBE_007() -> None:
    world = World(0, readiness={"periodSeconds": 10})
    world.started()
    status = world.status("u")
    assert status is not None
    await world.at(0.01)
    world.manager.trigger_readiness(world.pod, status)
    world.manager.trigger_readiness(world.pod, status)
    await world.at(30)
    first, second, *rest = world.times_s
    assert first > 0.01
    assert second == first  # the trigger that was left waiting
    assert rest[0] == round(first + 10, 3)
    await world.manager.stop()


async def test_runs_are_counted_with_their_durations_PROBE_082() -> None:
    world = await old_kubelet(0, 1, rpc_error("UNKNOWN"), readiness={"periodSeconds": 5})
    world.took_s = 2
    await world.at(113)
    text = world.manager.metrics.text()
    assert 'probe_type="Readiness",result="successful"} 1.0' in text
    assert 'probe_type="Readiness",result="failed"} 1.0' in text
    assert "prober_probe_duration_seconds_sum" in text
    assert 'probe_type="Readiness"} 2.0' in text
    world.manager.remove_pod(world.pod)
    await world.at(130)
    assert "Readiness" not in world.manager.metrics.text()
