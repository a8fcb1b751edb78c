"""The installed distribution: its version, the switch `--version`, and extras that are missing."""

from __future__ import annotations

import argparse
from functools import cache
from typing import Any, Final

NAME: Final = "refkubelet"
PACKAGES: Final = (
    *("simclock", "kubecri", "kubeobjects", "fakecri", "fakekubeapi", "refkubelet"),
    *("kubenodes", "kubelet_conformance"),
)
"""What the distribution installs."""


@cache
def own_version() -> str:
    """The version of this distribution; 0.0.0 where it is not installed."""
    # Imported here, since it takes 10 ms that few users need.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(NAME)
    except PackageNotFoundError:
        return "0.0.0"


class _ShowVersion(argparse.Action):
    """Prints the version and ends the process with 0; looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.exit(message=f"{parser.prog} {own_version()}\n")


def add_version(parser: argparse.ArgumentParser) -> None:
    """Give a command the switch `--version`."""
    parser.add_argument(
        "--version", action=_ShowVersion, nargs=0, help="print the version and exit"
    )


def not_installed(error: ModuleNotFoundError, extra: str) -> str:
    """What to tell a user who lacks the libraries of an extra: which one, and how to get them.

    Raises: the error itself for a module of this project, which would be a bug.
    """
    if (error.name or "").partition(".")[0] in PACKAGES:
        raise error
    return (
        f"the library {error.name} is not installed\n"
        f"  install it:  pip install '{NAME}[{extra}]'  (a checkout: '.[{extra}]')"
    )
