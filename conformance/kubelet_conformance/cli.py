"""`kubelet-conformance`: lists and explains the cases, or runs them with pytest."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from kubelet_conformance.ci.options import OPTIONS
from kubelet_conformance.packaged import BROUGHT, copy_out, missing
from kubelet_conformance.registry import Level, Selection, SelectionError, select
from kubelet_conformance.scenarios.files import SUFFIXES, in_files, named_cases, named_files
from kubelet_conformance.sources import all_cases, written_names
from kubeobjects.strict.errors import did_you_mean
from simclock.distribution import add_version, not_installed
from simclock.start_up import many_imports

HERE = Path(__file__).parent

EXAMPLES = """\
examples:
  kubelet-conformance run                          refkubelet on the fake runtime, virtual time
  kubelet-conformance run --rule BACK --level detail
  kubelet-conformance run --seeds 1:20 --latency 3 twenty times, with slow calls
  kubelet-conformance run --kubelet refkubelet-process --runtime fake-socket
  kubelet-conformance run --kubelet refkubelet-process --runtime containerd
  kubelet-conformance run --kubelet refkubelet-process --runtime containerd --containerd-version 2.1
  kubelet-conformance run --kubelet /usr/bin/kubelet --runtime fake --time jump
  kubelet-conformance run my-bug.yaml              a scenario, see docs/scenarios.md
  kubelet-conformance run 104648                   a case, bug or story by its ID, as --id 104648
  kubelet-conformance run --area bugs              the scenarios of this package; --area stories
  kubelet-conformance copy fixtures                its files, here: fixtures/bugs/104648.yaml ...
  kubelet-conformance run --results run.json       for: kubelet-conformance report run.json
  kubelet-conformance join part-*.json             one summary of the parts of --shard
  kubelet-conformance explain LIFE-143             a rule, its functions, the cases that hold it
  kubelet-conformance explain stop-minimum         a case, and its rules
  kubelet-conformance explain liveness probe       rules, cases and functions about these words
  kubelet-conformance run --kubelet /usr/bin/kubelet --runtime unix:///run/containerd/containerd.sock

exit codes: 0 all chosen cases passed or were skipped, 1 a case failed or the harness did,
2 the kubelet or the runtime cannot be used, 3 nothing failed, but the machine was too busy to judge
some cases (run them again, or use a smaller --jobs), 4 wrong options
"""


EXIT_OPTIONS = 4
WORDS = {
    "--level": ("must", "should", "detail"),
    "--kubelet": ("refkubelet", "refkubelet-process"),
    "--runtime": ("fake", "fake-socket", "containerd"),
    "--time": ("real", "jump"),
    "--traces": ("none", "failed", "all"),
}
"""Options -> the words that they take."""
NOT_FOR_CASES = ("cacheprovider", "asyncio", "hypothesispytest", "anyio", "fakecri", "timewarp")
"""Plugins of pytest that a run goes without, where they are installed."""
READER_GONE = 141
"""As for a program that SIGPIPE ends."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script. `run` hands every further option to pytest (-x, -q, --junitxml=...).

    When its output is no longer read (`... | head`), it ends silently with READER_GONE.
    """
    try:
        code = _main(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python writes what is left when it ends, and would meet the same error then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    return code


def _main(arguments: Sequence[str] | None) -> int:
    """List the cases, or show help; only `run` with options goes to pytest."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["report"], ["show"], ["diff"], ["matrix"]):
        # Here, not above: the other commands start earlier without it.
        from kubelet_conformance.report import commands as reports

        return reports.main(words[0], words[1:])
    if words[:1] == ["join"]:
        from kubelet_conformance.ci import join  # as above

        return join.main(words[1:])
    if words[:1] in (["check"], ["learn"]):
        return of_scenarios(words[0], words[1:])
    if words[:1] == ["search"]:
        return of_search(words[1:])
    if words[:1] == ["check-trace"]:
        return of_recordings(words[1:])
    if words[:1] == ["run"] and not {"-h", "--help"} & set(words):
        return run(words[1:])
    options = command_line().parse_args(words)
    do = {"list": list_cases, "explain": explain, "copy": copy, "completion": print_completion}
    return do[options.command](options)


def command_line() -> argparse.ArgumentParser:
    """All commands and options, for help and for completion; `run` and those of scenarios read
    their words themselves."""
    parser = argparse.ArgumentParser(
        prog="kubelet-conformance",
        description="Conformance suite for kubelets and container runtimes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="show the cases; needs no kubelet")
    _add_selection(listing, level="detail")
    _add_run(commands)
    commands.add_parser("check", help="look for mistakes in scenarios; runs nothing")
    commands.add_parser("learn", help="make a scenario of recorded calls")
    commands.add_parser("check-trace", help="hold recorded calls against the laws")
    commands.add_parser("search", help="look for bugs that no case is about, in drawn worlds")
    commands.add_parser("report", help="make a page of a result file, or of a run's parts")
    commands.add_parser("join", help="say how the parts of a run ended together")
    commands.add_parser("show", help="make a page of recorded calls")
    commands.add_parser("diff", help="say what differs between two runs")
    commands.add_parser("matrix", help="show runs side by side, areas by products")
    explaining = commands.add_parser("explain", help="what a rule says, or a case checks")
    explaining.add_argument(
        "words",
        nargs="+",
        metavar="NAME",
        help="a rule (LIFE-143), a clause (LIFE-143.2), a case, or words to look for (liveness)",
    )
    copying = commands.add_parser("copy", help="copy the package's fixtures or examples here")
    copying.add_argument("what", choices=BROUGHT)
    copying.add_argument(
        "directory", nargs="?", type=Path, metavar="DIR", help="a new one (default: ./WHAT)"
    )
    completing = commands.add_parser("completion", help="print completion for a shell")
    completing.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    return parser


def _add_run(commands: Any) -> None:
    """`run`: what is run, on what; and how (`_add_pace`), and what is kept of it."""
    further = "every further option goes to pytest: -x, -q, --junitxml=..."
    running: argparse.ArgumentParser = commands.add_parser(
        "run", help="run the cases", epilog=further
    )
    _add_selection(running, level="must")
    running.add_argument("--kubelet", help="refkubelet, refkubelet-process or a path")
    running.add_argument("--runtime", help="fake, fake-socket, containerd or unix:///path.sock")
    running.add_argument(
        "--kubelet-flag",
        action="append",
        metavar="FLAG",
        help="a further flag of the kubelet process: --kubelet-flag=--v=4",
    )
    running.add_argument(
        "--kubelet-config", metavar="FILE", help="further fields of its KubeletConfiguration"
    )
    running.add_argument("--containerd-version", help="1.6 (default), 1.7 or 2.1")
    running.add_argument("--seed", type=int, help="fixes every random choice of a virtual run")
    running.add_argument("--seeds", help="a virtual run for each of these: 1:20, 3,7")
    running.add_argument(
        "--latency",
        type=float,
        metavar="FACTOR",
        help="factor on how long the calls of a virtual run take (default 1; 0: no time)",
    )
    _add_pace(running)
    running.add_argument("--shard", metavar="K/N", help="the K-th of N parts of the chosen cases")
    running.add_argument("--disable", action="append", metavar="ID", help="report as disabled")
    running.add_argument("--results", metavar="FILE", help="write each case as JSON lines")
    running.add_argument(
        "--traces",
        choices=["none", "failed", "all"],
        help="of which cases the result file has what happened (default failed)",
    )
    for name, meaning in OPTIONS.items():
        running.add_argument(name, **meaning)
    running.add_argument(
        "--kubernetes-version",
        metavar="VERSION",
        help="of the kubelet, if it does not tell: 1.30.3",
    )
    running.add_argument(
        "files", nargs="*", metavar="FILE", help="scenarios and modules of cases; IDs"
    )


def _add_pace(running: argparse.ArgumentParser) -> None:
    """How many cases at a time, how fast, and which take too long."""
    running.add_argument(
        "--jobs",
        type=int,
        help="cases at a time in a real run (8), processes of a virtual one (one per processor)",
    )
    running.add_argument(
        "--dask", metavar="ADDRESS", help="virtual cases on the workers of a Dask cluster"
    )
    running.add_argument("--time", help="of a kubelet binary: real (default) or jump")
    running.add_argument("--speed", metavar="N", help="of a kubelet binary: N times as fast")
    running.add_argument("--alone", action="store_true", help="a kubelet of its own for each case")
    running.add_argument("--long", action="store_true", help="real runs of cases that last minutes")
    running.add_argument(
        "--check-since",
        action="store_true",
        help="only the cases that the kubelet is too old for; one that passes is a failure",
    )


def explain(options: argparse.Namespace) -> int:
    """Print what a rule says, or a case checks, or what is about some words."""
    # Here, not above: `run` starts earlier without it.
    from kubelet_conformance.explain import UnknownName, explained
    from kubelet_conformance.rule_texts import all_rules

    try:
        print(explained(options.words, all_rules(), all_cases()))
    except ModuleNotFoundError as error:
        print(f"kubelet-conformance: {not_installed(error, 'conformance')}", file=sys.stderr)
        return 2
    except UnknownName as problem:
        print(f"kubelet-conformance: {problem}", file=sys.stderr)
        return EXIT_OPTIONS
    return 0


def copy(options: argparse.Namespace) -> int:
    """Copy fixtures or examples out of the package."""
    target = options.directory or Path(options.what)
    try:
        copy_out(options.what, target)
    except FileExistsError:
        print(f"kubelet-conformance: copy: {target} is there already", file=sys.stderr)
        return EXIT_OPTIONS
    except OSError as error:
        print(f"kubelet-conformance: copy: {target}: {error.strerror}", file=sys.stderr)
        return EXIT_OPTIONS
    print(f"{options.what} of the package are in {target}")
    return 0


def print_completion(options: argparse.Namespace) -> int:
    """Print what makes a shell complete commands and options."""
    try:
        import shtab  # of the extra; no other command needs it
    except ModuleNotFoundError as error:
        print(f"kubelet-conformance: {not_installed(error, 'conformance')}", file=sys.stderr)
        return 2
    parser = command_line()
    # A file is completed where an option takes one.
    _complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, options.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: Any) -> None:
    """Tell shtab which words are files, in all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.metavar == "FILE" or action.dest in ("kubelet", "files"):
            action.complete = files  # type: ignore[attr-defined]


def of_scenarios(command: str, words: Sequence[str]) -> int:
    """`check` looks for mistakes in scenarios, `learn` makes one of recorded calls."""
    # Here, not above: the other commands start earlier without it.
    from kubelet_conformance.scenarios import commands

    do = commands.check if command == "check" else commands.learn
    parser = argparse.ArgumentParser(prog=f"kubelet-conformance {command}", description=do.__doc__)
    (commands.add_check if command == "check" else commands.add_learn)(parser)
    return do(parser.parse_args(words))


def of_recordings(words: Sequence[str]) -> int:
    """`check-trace` holds recorded calls against the laws."""
    from kubelet_conformance.recordings import command  # as above

    parser = argparse.ArgumentParser(
        prog="kubelet-conformance check-trace", description=command.main.__doc__
    )
    command.add_words(parser)
    return command.main(parser.parse_args(words))


def of_search(words: Sequence[str]) -> int:
    """`search` plays worlds that are drawn from seeds, and asks the laws."""
    from kubelet_conformance.search import command  # as above

    parser = argparse.ArgumentParser(
        prog="kubelet-conformance search", description=command.main.__doc__
    )
    command.add_words(parser)
    return command.main(parser.parse_args(words))


def _add_selection(parser: argparse.ArgumentParser, *, level: str) -> None:
    """Add the options that choose cases; `level` is the default level."""
    parser.add_argument("--area", action="append", default=[], help="only this area")
    parser.add_argument("--rule", action="append", default=[], help="rule (BACK-009) or family")
    parser.add_argument("--id", action="append", default=[], help="only this case")
    parser.add_argument(
        "--level",
        default=level,
        choices=["must", "should", "detail"],
        help=f"this level and the stricter ones (default {level})",
    )


def list_cases(options: argparse.Namespace) -> int:
    """Print ID, level, rules, needed features and title of the chosen cases."""
    selection = Selection(
        ids=tuple(options.id),
        areas=tuple(options.area),
        rules=tuple(options.rule),
        level=Level[options.level.upper()],
    )
    try:
        cases = select(all_cases(), selection)
    except ModuleNotFoundError as error:
        print(f"kubelet-conformance: {not_installed(error, 'conformance')}", file=sys.stderr)
        return 2
    except SelectionError as problem:
        print(f"kubelet-conformance: {problem}", file=sys.stderr)
        return 4
    for case in cases:
        needs = ",".join(sorted(feature.name.lower() for feature in case.needs))
        print(f"{case.area}/{case.id}  {case.level.name}  {','.join(case.rules)}  [{needs}]")
        print(f"    {case.title}")
    print(f"{len(cases)} case{'' if len(cases) == 1 else 's'}")
    return 0


def run(words: Sequence[str]) -> int:
    """Run pytest over the cases with the plugin; returns its exit code."""
    for name in ("pytest", "pytest_asyncio", "pytest_timeout", "rich", "lightkube"):
        if find_spec(name) is None:
            error = ModuleNotFoundError(name=name)
            print(f"kubelet-conformance: {not_installed(error, 'conformance')}", file=sys.stderr)
            return 2
    ids = named_cases(words)
    words = [word for word in words if word not in ids]
    words += [word for name in ids for word in ("--id", name)]
    named = named_files(words)
    if problem := _wrong_words(words, with_files=bool(named)):
        print(f"kubelet-conformance: {problem}", file=sys.stderr)
        return EXIT_OPTIONS
    with many_imports():  # not at the top: `list` goes without them
        import pytest

        import kubelet_conformance.pytest_plugin  # noqa: F401  # while no garbage is collected

    rest = [word for word in words if word not in named]
    files = in_files(named)
    if problem := _wrong_files(files):
        print(problem, file=sys.stderr)
        return EXIT_OPTIONS
    # A time-out of CI sends SIGTERM: end as Ctrl-C does, and stop what was started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Plugins for tests, which cases are not: some import for seconds.
    without = [f"-pno:{name}" for name in NOT_FOR_CASES]
    fixed = ["-p", "kubelet_conformance.pytest_plugin", *without]
    place = ["-c", str(HERE / "pytest.ini"), f"--rootdir={HERE}"]
    cases = [str(file.absolute()) for file in files] or [str(HERE / "cases")]
    return int(pytest.main([*fixed, *place, *cases, *rest]))


def _wrong_words(words: Sequence[str], *, with_files: bool) -> str:
    """What is wrong with the words that choose cases and programs, before anything is loaded; "":
    nothing. Files that are named may have cases of other names."""
    if near := [near for name, known in WORDS.items() for near in _near(words, name, known)]:
        return near[0]
    chosen = {name: tuple(_values(words, name)) for name in ("--area", "--rule", "--id")}
    disabled = tuple(_values(words, "--disable"))
    if not with_files and (disabled or any(chosen.values())):
        areas, rules, ids = chosen.values()
        try:
            names = written_names(rules=bool(rules))
            names.check(Selection(ids, areas, rules, disabled=disabled))
        except SelectionError as problem:
            return str(problem)
    return ""


def _near(words: Sequence[str], name: str, known: Sequence[str]) -> Iterator[str]:
    """What to say of a value that is nearly one of the known ones; others may be paths."""
    for value in _values(words, name):
        if value not in known and "/" not in value and (hint := did_you_mean(value, known)):
            yield f"{name} {value}{hint} (wanted {', '.join(known)})"


def _values(words: Sequence[str], name: str) -> Iterator[str]:
    """The values that are given to an option."""
    for word, after in pairwise([*words, ""]):
        if word == name:
            yield after
        elif word.startswith(f"{name}="):
            yield word.removeprefix(f"{name}=")


def _wrong_files(files: Sequence[Path]) -> str:
    """What is wrong with these files, a line for each mistake; "" when nothing is."""
    empty = [f"{file}: a directory without scenarios (*.yaml)" for file in files if file.is_dir()]
    if wrong := [*missing(files), *empty]:
        return "\n".join(f"kubelet-conformance: {line}" for line in wrong)
    scenarios = [file for file in files if file.suffix in SUFFIXES]
    if not scenarios:
        return ""
    # Here, not above: runs without scenarios start earlier.
    from kubelet_conformance.scenarios.reading import load_scenarios
    from kubeobjects.strict.errors import ScriptError

    try:
        load_scenarios(scenarios)
    except ScriptError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.exit(main())
