"""Tables of README.md and docs/verified.md are what the kept result files say, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from result_files import case_line, head_line, write_lines, write_run

from kubelet_conformance.results_schema import RunEnd


def render(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As tox runs it: Python does not look for modules beside the script."""
    return subprocess.run(
        [sys.executable, "-P", str(ROOT / "tools/docs/render_verified.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree of its own, of README, pages and result files."""
    for folder, files in {
        ".": ["README.md"],
        "docs": ["verified.md", "timewarp.md", "kubelets.md", "search.md"],
        "results": [path.name for path in (ROOT / "results").glob("*.json")],
    }.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        for file in files:
            shutil.copy(ROOT / folder / file, tmp_path / folder)
    return tmp_path


def change(file: Path, *path: Any, to: Any) -> None:
    content = json.loads(file.read_text())
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    file.write_text(json.dumps(content))


def test_the_pages_show_what_the_result_files_say() -> None:
    done = render("--check")
    assert done.returncode == 0, done.stderr


def test_an_old_page_is_found_and_made_new(copy: Path) -> None:
    change(copy / "results/verified.json", "1.6", "machine", "operations", to=7_654_321)
    assert render("--check", "--tree", str(copy)).returncode == 1
    assert render("--tree", str(copy)).returncode == 0
    assert "7,654,321" in (copy / "docs/verified.md").read_text()


def test_a_failed_case_of_a_recorded_run_shows_in_the_table(copy: Path) -> None:
    runs = json.loads((copy / "results/conformance.json").read_text())
    case = next(iter(runs[0]["cases"]["backoff"]))
    change(copy / "results/conformance.json", 0, "cases", "backoff", case, to="failed")
    assert render("--tree", str(copy)).returncode == 0
    lines = (copy / "docs/verified.md").read_text().splitlines()
    row = next(line for line in lines if "| backoff |" in line)
    assert ", 1 failed," in row


def test_the_numbers_of_the_readme_come_from_the_last_whole_run(copy: Path) -> None:
    runs = json.loads((copy / "results/conformance.json").read_text())
    index = [run["runtime"] for run in runs].index("fakecri, virtual time")
    change(copy / "results/conformance.json", index, "whole", "real_s", to=4321.0)
    assert render("--tree", str(copy)).returncode == 0
    assert "In 4321 s of real time" in (copy / "README.md").read_text()


def test_tables_that_compare_runs_say_how_large_each_was(copy: Path) -> None:
    runs = json.loads((copy / "results/conformance.json").read_text())
    runs[0]["cases"]["backoff"]["one-more"] = "passed"
    (copy / "results/conformance.json").write_text(json.dumps(runs))
    assert render("--tree", str(copy)).returncode == 0
    sizes = [f"{sum(map(len, run['cases'].values())):,}" for run in runs]
    rows = (copy / "docs/verified.md").read_text().splitlines()
    assert f"| *cases in this run* | {' | '.join(sizes)} |" in rows
    assert f"| *run on* | {' | '.join(run['date'] for run in runs)} |" in rows
    assert f"there are {sizes[-1]}." in (copy / "README.md").read_text()


def test_wrong_kubelets_are_counted_by_area(copy: Path) -> None:
    """One that is not noticed counts as explained only if it says why."""
    kept = {
        "pleg/a": {"noticed": ["relist"], "survives": ""},
        "pleg/b": {"noticed": [], "survives": "no case can see it"},
        "pleg/c": {"noticed": [], "survives": ""},
    }
    (copy / "results/suite-mutants.json").write_text(json.dumps(kept))
    assert render("--tree", str(copy)).returncode == 0
    assert "| pleg | 3 | 1 (33.3%) | 1 |" in (copy / "docs/verified.md").read_text()


def test_known_bugs_are_told_with_the_worlds_that_it_took(copy: Path) -> None:
    found = {"fixtures": ["12"], "seed": 7, "worlds": 7, "laws": ["one-law"], "date": "2030-01-02"}
    missed = {**found, "fixtures": ["13"], "seed": None, "worlds": 200, "laws": []}
    kept = json.dumps({"bugs/13": missed, "bugs/12": found})
    (copy / "results/search-known.json").write_text(kept)
    assert render("--tree", str(copy)).returncode == 0
    page = (copy / "docs/search.md").read_text()
    assert "\n1 of 2 (50%) were found.\n" in page
    assert "| [12](../fixtures/bugs/12.yaml) | 7 | `one-law` | 2030-01-02 |\n" in page
    assert "| [13](../fixtures/bugs/13.yaml) |  | none in 200 worlds | 2030-01-02 |\n" in page


def test_of_mutants_it_is_told_how_many_were_tried(copy: Path) -> None:
    kept = {
        "pkg.a": {"killed": 9, "tried": 10, "mutants": 1000, "date": "2030-01-02"},
        "pkg.b": {"killed": 30, "tried": 30, "mutants": 30, "date": "2030-01-02"},
    }
    (copy / "results/mutants.json").write_text(json.dumps(kept))
    assert render("--tree", str(copy)).returncode == 0
    page = (copy / "docs/verified.md").read_text()
    assert "| `pkg.a` | 9 | 10 | 1,000 | 2030-01-02 |" in page
    assert "| all of these | 39 (97.5%) | 40 | 1,030 |" in page


def test_a_page_without_its_markers_is_an_error_that_names_them(copy: Path) -> None:
    (copy / "docs/verified.md").write_text("nothing here\n")
    done = render("--tree", str(copy))
    assert done.returncode == 2
    assert "wanted the line once: <!-- begin: pairs" in done.stderr


def told(verdict: str, level: str = "must", messages: str = "") -> dict[str, Any]:
    return {"level": level, "verdict": verdict, "messages": messages}


def test_a_run_of_an_older_kubelet_becomes_a_line_of_its_own(copy: Path, tmp_path: Path) -> None:
    bug = "it stops (kubernetes/kubernetes#1, fixed in 1.9)"
    older = "needs kubelet 1.35 or newer, this one is 1.33"
    cases = {
        "good": told("passed"),
        "bad": told("failed", messages="expected: a start"),
        "late": told("skipped", messages=older),
        "elsewhere": told("skipped", messages="needs cgroup v2"),
        "buggy": told("known bug", messages=f"{bug}\nmore"),
        "not-binding": told("failed", level="detail"),
    }
    write_run(tmp_path / "run.json", cases, real_s=130.0)
    keep = [str(ROOT / "tools/docs/keep_minor.py"), "1.7.9", str(tmp_path / "run.json")]
    subprocess.run([sys.executable, *keep, "--kept", str(copy / "results")], check=True)
    assert render("--tree", str(copy)).returncode == 0
    page = (copy / "docs/kubelets.md").read_text()
    assert "| 1.7.9 | backoff | 5 | 1 | 1 | 1 | 1 | 1 | 2 min 10 s | 2030-01-02 |\n" in page
    assert "\n- buggy: it stops (kubernetes/kubernetes#1, fixed in 1.9)\n" in page
    assert "\n1.7.9 did not pass bad.\n" in page


def test_fixtures_are_red_or_green_for_each_kubelet(copy: Path, tmp_path: Path) -> None:
    (copy / "results/fixtures.json").write_text("{}")
    outcomes = {
        "1.7.9": {"12": "known bug", "3": "known bug", "oddity": "failed"},
        "1.10.2": {"12": "passed", "3": "known bug", "oddity": "skipped"},
    }
    for kubelet, of in outcomes.items():
        cases = {
            name: told(verdict, messages="" if verdict == "passed" else "why\nmore")
            | {"area": "bugs", "title": f"title of {name}"}
            for name, verdict in of.items()
        }
        file = write_run(tmp_path / f"{kubelet}.json", cases)
        keep = [str(ROOT / "tools/docs/keep_minor.py"), kubelet, str(file)]
        subprocess.run([sys.executable, *keep, "--kept", str(copy / "results")], check=True)
    assert render("--tree", str(copy)).returncode == 0
    page = (copy / "docs/kubelets.md").read_text()
    rows = [line for line in page.splitlines() if "../fixtures/bugs/" in line]
    assert rows == [
        "| [3](../fixtures/bugs/3.yaml) | title of 3 | red | red |",
        "| [12](../fixtures/bugs/12.yaml) | title of 12 | red | green |",
        "| [oddity](../fixtures/bugs/oddity.yaml) | title of oddity | **failed** |  |",
    ]
    assert "\nRed on one kubelet and green on a newer one (1): 12 (1.7.9 to 1.10.2).\n" in page
    assert "\nRed on 1.10.2, the newest here (1): 3.\n" in page
    assert "\n- oddity on 1.7.9: why\n" in page
    assert "1.7.9" not in json.loads((copy / "results/minors.json").read_text())


def kept_by(*words: str) -> None:
    subprocess.run([sys.executable, str(ROOT / "tools/docs/keep_runs.py"), *words], check=True)


def run_file(file: Path, cases: dict[str, dict[str, Any]]) -> str:
    write_run(file, cases, real_s=61.0, load=2.5)
    return str(file)


def test_runs_with_many_seeds_become_a_line_for_each_latency(copy: Path, tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "seeds.json",
        head_line(seeds=(3, 4)),
        *(case_line("good", seed=seed) for seed in (3, 4)),
        case_line("bad", seed=3),
        case_line("bad", "failed", seed=4, messages="too late"),
        RunEnd(61.0, 2.5),
    )
    kept_by("--kept", str(copy / "results"), "seeds", str(file))
    assert render("--tree", str(copy)).returncode == 0
    page = (copy / "docs/verified.md").read_text()
    line = "| 1 | 3 to 4 | must | 2 | 3 | 1 | 1 min 01 s at a load of 2.5 | 2030-01-02 |\n"
    assert line in page
    assert "\nLatency 1, bad: too late\n" in page


def test_runs_of_one_thing_name_the_cases_that_ended_in_two_ways(
    copy: Path, tmp_path: Path
) -> None:
    steady = {"good": told("passed"), "bad": told("failed"), "left": told("skipped")}
    first = run_file(tmp_path / "1.json", {**steady, "now-and-then": told("passed")})
    second = run_file(tmp_path / "2.json", {**steady, "now-and-then": told("failed")})
    kept_by("--kept", str(copy / "results"), "repeats", "a kubelet", first, second)
    assert render("--tree", str(copy)).returncode == 0
    page = (copy / "docs/verified.md").read_text()
    assert "| a kubelet | 4 | 2 | 1 | 1 | 1 min 01 s | 2.5 | 2030-01-02 |\n" in page
    assert "| a kubelet | 4 | 1 | 2 | 1 | 1 min 01 s | 2.5 | 2030-01-02 |\n" in page
    assert "3 MUST cases ran; failed each time: bad; another outcome" in page
    assert "in one of the runs: now-and-then (passed, failed).\n" in page


def spec(
    name: str, state: str = "passed", message: str = "", run_time: int = 1, kind: str = "It"
) -> dict[str, Any]:
    """Of a report as ginkgo writes it."""
    return {
        "ContainerHierarchyTexts": ["Pods"],
        "LeafNodeType": kind,
        "LeafNodeText": name,
        "LeafNodeLocation": {"FileName": "/home/somebody/k8s/test/e2e_node/pods_test.go"},
        "State": state,
        "RunTime": run_time,
        "Failure": {"Message": message},
    }


def report(file: Path, *specs: dict[str, Any]) -> str:
    suite = {
        "StartTime": "2030-01-02T03:04:05Z",
        "RunTime": 130_000_000_000,
        "SuiteConfig": {"LabelFilter": "Good && !Slow", "ParallelTotal": 4},
        "SpecReports": [spec("setup", kind="SynchronizedBeforeSuite"), *specs],
    }
    file.write_text(json.dumps([suite]))
    return str(file)


def node_suite(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "tools/docs/keep_node_suite.py"
    command = [sys.executable, str(script), "--kept", str(copy / "results"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_node_suite_on_two_kubelets_becomes_a_table(copy: Path, tmp_path: Path) -> None:
    """Left out by the filter: a skip that took no time. A spec that was run again has its second
    outcome, and what failed on one kubelet only is told first."""
    (copy / "results/node-suite.json").write_text("{}")
    both = spec("both fail", "failed", "no /home/somebody/module here\nmore")
    left = spec("left out", "skipped", run_time=0)
    real = report(tmp_path / "real.json", spec("good"), spec("hard"), both, left)
    whole = report(
        tmp_path / "ref.json",
        spec("good", "timedout"),
        spec("hard", "failed", "it | is"),
        both,
        left,
    )
    again = report(tmp_path / "again.json", spec("good"), spec("hard", "skipped", run_time=0))
    assert node_suite(copy, "keep", "Some", "real", real).returncode == 0
    assert node_suite(copy, "keep", "Some", "ours", whole, again).returncode == 0
    assert node_suite(copy, "because", "Some", "both", "no module").returncode == 0
    assert node_suite(copy, "because", "Some", "good", "a load").returncode == 0
    assert node_suite(copy, "because", "Some", "left out", "nobody asked").returncode == 2
    assert render("--tree", str(copy)).returncode == 0
    assert "/home/somebody" not in (copy / "results/node-suite.json").read_text()
    page = (copy / "docs/verified.md").read_text()
    assert "| e2e_node | 2 passed, 1 failed, 0 skipped | 1 passed, 2 failed, 0 skipped |\n" in page
    assert "| all | 2 passed, 1 failed, 0 skipped | 1 passed, 2 failed, 0 skipped |\n" in page
    assert "\nLabel filter: `Good && !Slow`.\n" in page
    sizes = "3 specs, 4 processes, 2 min 10 s, 2030-01-02"
    run = f"{sizes}. Failed in the whole run and passed when repeated"
    assert f"\nreal: {run}: none.\n" in page
    assert f"\nours: {run}: Pods good (a load).\n" in page
    hard, both_row = (
        "| Pods hard | passed | failed | `it \\| is` |\n",
        "| Pods both fail | failed | failed | no module |\n",
    )
    assert hard + both_row in page


def node_specs(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "tools/docs/keep_node_specs.py"
    command = [sys.executable, str(script), "--kept", str(copy / "results"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_single_specs_on_two_kubelets_become_a_table(copy: Path, tmp_path: Path) -> None:
    """Run in lots, the ones of doubt several times; a lot that nobody ran on the other kubelet."""
    (copy / "results/node-specs.json").write_text("{}")
    first = report(tmp_path / "1.json", spec("good"), spec("left out", "skipped", run_time=0))
    second = report(tmp_path / "2.json", spec("rare"), spec("both", "failed", "at /root/x | no"))
    cut_off = spec("both", "interrupted", "Interrupted by User")
    third = report(
        tmp_path / "3.json", spec("rare", "timedout", "30 s"), spec("host", "skipped"), cut_off
    )
    fifth = report(tmp_path / "5.json", spec("only there"))
    assert node_specs(copy, "keep", "real", first, second, third, fifth).returncode == 0
    assert node_specs(copy, "keep", "ours", first).returncode == 0
    fourth = report(tmp_path / "4.json", spec("only there", "skipped", "not here"))
    assert node_specs(copy, "keep", "ours", first, second, fourth).returncode == 0
    elsewhere = spec("elsewhere")
    elsewhere["LeafNodeLocation"] = {"FileName": "/k8s/test/e2e_node/image_gc_test.go"}
    other = report(tmp_path / "6.json", elsewhere)
    assert node_specs(copy, "keep", "another", other).returncode == 0
    assert node_specs(copy, "because", "host", "no such device").returncode == 0
    assert node_specs(copy, "because", "good", "it always passed").returncode == 2
    assert node_specs(copy, "because", "left out", "nobody asked").returncode == 2
    assert render("--tree", str(copy)).returncode == 0
    page = (copy / "docs/verified.md").read_text()
    sums = "2 passed, 2 failed, 1 skipped | 2 passed, 1 failed, 1 skipped"
    assert "| e2e_node/image_gc | not run | not run | 1 passed, 0 failed, 0 skipped |\n" in page
    assert f"| e2e_node/pods | {sums} | not run |\n" in page
    assert "\nreal: 8 min 40 s, 2030-01-02.\n\nours: 6 min 30 s, 2030-01-02.\n" in page
    rows = (
        "| Pods only there | passed | skipped | not run | `not here` |\n",
        "| Pods rare | failed 1 of 2 | passed | not run | `30 s` |\n",
        "| Pods both | failed | failed | not run | `at x \\| no` |\n",
    )
    assert "".join(rows) in page
    assert "\nSkipped on each, and in no line below: 1 of e2e_node/pods.\n" in page
