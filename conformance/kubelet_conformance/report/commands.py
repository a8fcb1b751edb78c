"""`kubelet-conformance report`, `show`, `diff` and `matrix`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from fakecri.recording.recorded import RecordError
from kubelet_conformance.report import pages, side_by_side, tables
from kubelet_conformance.report.compare import Slack
from kubelet_conformance.report.differences import CaseDifference, differences, lines
from kubelet_conformance.report.showing import recorded_trace
from kubelet_conformance.results_file import read
from kubelet_conformance.results_run import ResultsError, RunFile, is_part, joined, missing_parts
from kubelet_conformance.results_schema import CaseLine, schema
from kubelet_conformance.rule_texts import all_rules
from kubelet_conformance.traces.entries import Trace
from kubeobjects.structs import replace

COMMANDS: Final = ("report", "show", "diff", "matrix")
EXIT_MISTAKES: Final = 2
EXACT: Final = Slack(1.0, 0.001)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the words of `report`."""
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="a result file, or the parts of one run"
    )
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        metavar="FILE",
        help="the page; by default the first result file's name with .html",
    )
    parser.add_argument("--schema", action="store_true", help="print the schema of result files")


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the words of `show`."""
    parser.add_argument(
        "record",
        type=Path,
        metavar="FILE",
        help="JSON lines of fakecri proxy --record, or the folder of a recorded run",
    )
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        metavar="FILE",
        help="the page; by default the file's name with .html",
    )


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the words of `diff`."""
    parser.add_argument("a", type=Path, metavar="A", help="a result file")
    parser.add_argument("b", type=Path, metavar="B", help="another one")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page, side by side")
    parser.add_argument(
        "--exact",
        action="store_true",
        help="tell of each wait that differs by more than a millisecond; by default of those that "
        "two right kubelets do not have",
    )


def add_matrix(parser: argparse.ArgumentParser) -> None:
    """Add the words of `matrix`."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="result files")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--markdown", action="store_true", help="print Markdown")
    forms.add_argument("--html", type=Path, metavar="FILE", help="write a page")


def main(command: str, words: Sequence[str]) -> int:
    """Exit codes: 0 done; 1 of `diff`: something differs; 2 a file cannot be read or written."""
    do, add = {
        "report": (report, add_report),
        "show": (show, add_show),
        "diff": (diff, add_diff),
        "matrix": (matrix, add_matrix),
    }[command]
    parser = argparse.ArgumentParser(prog=f"kubelet-conformance {command}", description=do.__doc__)
    add(parser)
    options = parser.parse_args(words)
    try:
        return do(options)
    except (ResultsError, RecordError) as problem:
        return _mistake(str(problem))
    except OSError as problem:
        return _mistake(f"cannot write {problem.filename}: {(problem.strerror or '').lower()}")


def _mistake(text: str) -> int:
    print(f"kubelet-conformance: {text}", file=sys.stderr)
    return EXIT_MISTAKES


def report(options: argparse.Namespace) -> int:
    """Make a page of a result file, or of several that are parts of one run (`--shard`): one file,
    to be opened by a browser."""
    if options.schema:
        print(json.dumps(schema(), indent=1))
        return 0
    if not options.files:
        return _mistake("report: wanted a result file, or --schema")
    run = read(*options.files)
    text = pages.run_page(
        head=run.head,
        runtime=run.runtime,
        end=run.end,
        cases=run.cases,
        traces=lambda case: _trace_json(run, case),
        rules=_rules(),
    )
    if run.cut:
        print(f"{run.path}: its last line is not whole and left out", file=sys.stderr)
    if len(options.files) > 1 and (missing := missing_parts(run.head.shard)):
        print(f"{run.path}: of the parts of this run, {missing}", file=sys.stderr)
    return _written(options.output or run.path.with_suffix(".html"), text)


def _rules() -> Mapping[str, str]:
    return {rule.id: rule.text for rule in all_rules().values()}


class _RawTrace(msgspec.Struct):
    """The line of a trace, whose trace stays as it is."""

    trace: msgspec.Raw


def _trace_json(run: RunFile, case: CaseLine) -> bytes | None:
    """The trace as it stands in the file."""
    raw = run.raw_trace(case)
    return None if raw is None else bytes(msgspec.json.decode(raw, type=_RawTrace).trace)


def show(options: argparse.Namespace) -> int:
    """Make a page with the timeline of recorded calls."""
    trace = recorded_trace(options.record)
    if not trace.entries:
        return _mistake(f"{options.record}: no calls in it")
    path: Path = options.record
    beside = path / f"{path.name}.html" if path.is_dir() else path.with_suffix(".html")
    return _written(options.output or beside, pages.show_page(_title(path), _json(trace)))


def _title(path: Path) -> str:
    """The last two words of the place of a recording: `s02/api`."""
    return "/".join(path.absolute().parts[-2:])


def _json(trace: Trace) -> bytes:
    return msgspec.json.encode(trace)


def diff(options: argparse.Namespace) -> int:
    """Say what differs between two runs: the first call of each case that does, and verdicts."""
    a, b = read(options.a), read(options.b)
    diffs = list(differences(a, b, EXACT if options.exact else Slack()))
    for line in lines(a, b, diffs):
        print(line)
    if options.html:
        _written(options.html, _diff_page(a, b, diffs))
    return 1 if any(diff.pairs or diff.verdicts_differ for diff in diffs) else 0


def _diff_page(a: RunFile, b: RunFile, found: Sequence[CaseDifference]) -> str:
    return side_by_side.diff_page(
        names=((a.title, a.path.name), (b.title, b.path.name)),
        found=found,
        traces=lambda one: (_trace_json(a, one.a) or b"{}", _trace_json(b, one.b) or b"{}"),
    )


def matrix(options: argparse.Namespace) -> int:
    """Show how the runs ended, areas by products; parts of one run are one column."""
    columns = _columns(_whole_runs(options.files))
    if options.html:
        return _written(options.html, side_by_side.matrix_page(columns))
    form = tables.markdown_table if options.markdown else tables.text_table
    print(form(*tables.matrix(columns)))
    heads, rows = tables.differing(columns)
    if rows:
        print(f"\n{form(heads, rows)}")
    return 0


def _whole_runs(files: Sequence[Path]) -> list[RunFile]:
    """The runs in these files; files of one part each, of the same products, are one run."""
    whole: list[list[RunFile]] = []
    in_parts: dict[str, list[RunFile]] = {}
    for file in files:
        run = read(file)
        if not is_part(run.head.shard):
            whole.append([run])
        elif run.title in in_parts:
            in_parts[run.title].append(run)
        else:
            whole.append(in_parts.setdefault(run.title, [run]))
    return [joined(parts) for parts in whole]


def _columns(runs: Sequence[RunFile]) -> list[tables.Column]:
    """The runs as columns; those of the same products have the names of their files, too."""
    titles = [run.title for run in runs]
    columns = [tables.Column(run.title, run.worst()) for run in runs]
    return [
        replace(column, name=f"{column.name} ({run.path.stem})")
        if titles.count(column.name) > 1
        else column
        for column, run in zip(columns, runs, strict=True)
    ]


def _written(path: Path, text: str) -> int:
    path.write_text(text, encoding="utf-8")
    print(path)
    return 0
