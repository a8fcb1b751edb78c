"""How many worlds of `kubelet-conformance search` one processor sees in an hour."""

from __future__ import annotations

import time

from measure import Row

from kubelet_conformance.harness.runs.garbage import collect_less
from kubelet_conformance.search import play, world_of

HOUR_S = 3600.0


def rows(worlds: int = 5) -> list[Row]:
    """One row, of the worlds of the first seeds, drawn, played on refkubelet and held against all
    laws."""
    collect_less()  # as search does
    play(world_of(0))  # imports the rest
    began_s = time.process_time()
    verdicts = [play(world_of(seed)) for seed in range(1, worlds + 1)]
    each_s = (time.process_time() - began_s) / worlds
    errors = {verdict.seed: verdict.error for verdict in verdicts if verdict.error}
    assert not errors, f"worlds that could not be played: {errors}"
    passed_s = sum(verdict.world_s for verdict in verdicts) / worlds
    what = "worlds of search an hour and processor"
    remark = f"{each_s * 1000:.0f} ms of CPU each, in which {passed_s / 60:.0f} min pass there"
    return [Row(what, HOUR_S / each_s, "worlds", remark=remark)]


if __name__ == "__main__":
    for row in rows():
        print(row)
