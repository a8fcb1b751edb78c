"""The command line: `refkubelet run`. Heavy imports wait until something really starts.

Every mistake of the user (flag, file, socket, port) is told on stderr without a traceback, and the
exit code is 2. SIGTERM and SIGINT stop the kubelet and leave all containers running.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from refkubelet.command_flags import (
    DEPRECATED,
    IGNORED,
    NOT_DEPRECATED,
    REFUSED,
    SWITCHES,
    VALUES,
    with_hyphens,
)
from refkubelet.host.places import ROOT_DIR
from refkubelet.telemetry.log_format import FORMATS, log_to_stderr, verbosity_of
from simclock.distribution import add_version, not_installed
from simclock.start_up import many_imports

USAGE_ERROR: Final = 2
LABELS: Final = "key=value,...: labels of this node's Node object when it is registered"
SECCOMP: Final = "RuntimeDefault for containers without a seccomp profile, as seccompDefault"
FIELDS: Final = "flags of configuration fields"
ABOUT_FIELDS: Final = (
    "They win over --config and --config-dir. The kubelet calls most of them deprecated, and so "
    "does a warning here; --flag and --flag=false where no value is shown."
)

log = logging.getLogger("refkubelet.cli")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the process's exit code."""
    options = options_of(sys.argv[1:] if arguments is None else arguments)
    if options.command is None:
        _parser().print_help()
        return USAGE_ERROR
    log_to_stderr(options.v or 0, options.logging_format or FORMATS[0])
    _tell_flags(options)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC's own chatter is not for our users
    import asyncio  # late, as what follows: --help and mistakes in flags are answered at once

    try:
        with many_imports():
            from refkubelet.daemon import USER_ERRORS, run
    except ModuleNotFoundError as error:
        print(f"refkubelet: {not_installed(error, 'kubelet')}", file=sys.stderr)
        return USAGE_ERROR
    try:
        return asyncio.run(run(options))
    except USER_ERRORS as e:
        print(f"refkubelet: {e}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 0


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """What the words of a command line say. A mistake in them ends the process, and is told."""
    return _parser().parse_args(with_hyphens(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="refkubelet", description="A kubelet you can read: runs pods on a CRI runtime."
    )
    add_version(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser("run", help="run the kubelet until SIGTERM", allow_abbrev=False)
    _add_files(run)
    _add_node(run)
    _add_log(run)
    _add_fields(run)
    return parser


def _add_files(run: argparse.ArgumentParser) -> None:
    """The flags that name files and directories."""
    run.add_argument("--config", metavar="FILE", help="KubeletConfiguration v1beta1 (YAML or JSON)")
    run.add_argument(
        "--config-dir",
        metavar="DIR",
        help="drop-ins over the file: all *.conf in it and below, by name",
    )
    run.add_argument(
        "--kubeconfig", metavar="FILE", help="how to reach the API server; none = standalone"
    )
    run.add_argument(
        "--bootstrap-kubeconfig",
        metavar="FILE",
        default="",
        help="how to ask for a client certificate, where --kubeconfig has none that is valid; "
        "then that file is written",
    )
    run.add_argument(
        "--root-dir",
        metavar="DIR",
        default=str(ROOT_DIR),
        help=f"state of pods (default {ROOT_DIR})",
    )
    run.add_argument(
        "--cert-dir",
        metavar="DIR",
        help="where the kubelet's certificates are kept (default: pki below --root-dir)",
    )
    run.add_argument(
        "--image-credential-provider-config",
        metavar="PATH",
        default="",
        help="file or directory of CredentialProviderConfig: programs that know logins for images",
    )
    run.add_argument(
        "--image-credential-provider-bin-dir",
        metavar="DIR",
        default="",
        help="where those programs are",
    )


def _add_node(run: argparse.ArgumentParser) -> None:
    """What this node is, and how its kubelet behaves."""
    run.add_argument("--hostname-override", metavar="NAME", default="", help="name of this node")
    run.add_argument(
        "--node-ip",
        metavar="IP",
        default="",
        help="address of this node, or one of each family with a comma between them, which "
        "hostNetwork pods have and where the API server asks for logs and exec: with "
        "`address: 127.0.0.1` in the configuration 127.0.0.1",
    )
    run.add_argument(
        "--insecure-server",
        action="store_true",
        help="let the main port listen beyond loopback addresses even if everybody may do "
        "everything there",
    )
    run.add_argument("--seed", type=int, help="seed of all random choices, to repeat a run")
    run.add_argument("--node-labels", action="append", metavar="LABELS", default=[], help=LABELS)
    run.add_argument(
        "--seccomp-default",
        action=argparse.BooleanOptionalAction,
        default=False,
        help=SECCOMP,
    )


def _add_log(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "-v",
        "--v",
        dest="v",
        action=_Verbosity,
        nargs="?",
        metavar="LEVEL",
        help="tell what is done: syncs that change something, starts, stops, back-offs, evictions; "
        "-vv, or --v=4 and more, tells everything; wins over the file's logging.verbosity",
    )
    run.add_argument(
        "--logging-format",
        choices=FORMATS,
        help="of the log on stderr: text (default), or json: one object a line; wins over the "
        "file's logging.format",
    )


def _add_fields(run: argparse.ArgumentParser) -> None:
    """The flags of the kubelet beside those above."""
    run.set_defaults(fields=[], ignored=[])
    group = run.add_argument_group(FIELDS, ABOUT_FIELDS)
    for flag, field in sorted((*SWITCHES.items(), *VALUES.items())):
        keeps: dict[str, Any] = {"nargs": "?", "const": "true"} if flag in SWITCHES else {}
        group.add_argument(
            f"--{flag}",
            action=_OfField,
            dest=field,
            metavar="BOOL" if flag in SWITCHES else "VALUE",
            default=argparse.SUPPRESS,
            help=field,
            **keeps,
        )
    for flag in (*REFUSED, *IGNORED):
        run.add_argument(
            f"--{flag}",
            action=_WithoutField,
            nargs="?",
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )


class _OfField(argparse.Action):
    """Collects (flag, field, text) in `fields`, in the order of the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        flag = (option_string or "").removeprefix("--")
        namespace.fields = [*namespace.fields, (flag, self.dest, values)]


class _WithoutField(argparse.Action):
    """Refuses a flag by name, or notes that it is ignored. An empty value is none."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        flag = (option_string or "").removeprefix("--")
        if flag in IGNORED:
            namespace.ignored = [*namespace.ignored, flag]
        elif values not in ("", "false"):
            parser.error(f"--{flag} is not supported: {REFUSED[flag]}")


class _Verbosity(argparse.Action):
    """`-v` once or more, or the kubelet's `-v 4`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = namespace.v or 0
        if values is None or set(values) == {"v"}:
            namespace.v = before + 1 + len(values or "")
        elif values.isascii() and values.isdigit():
            namespace.v = verbosity_of(int(values))
        else:
            parser.error(f"-v {values}: wanted a number, such as -v 4")


def _tell_flags(options: argparse.Namespace) -> None:
    """Warn of flags that are deprecated or ignored, each once (CFG-010)."""
    for flag in dict.fromkeys(flag for flag, _, _ in options.fields):
        if flag not in NOT_DEPRECATED:
            log.warning(DEPRECATED, flag)
    for flag in dict.fromkeys(options.ignored):
        log.warning("--%s: accepted, but refkubelet does not act on it: %s", flag, IGNORED[flag])
