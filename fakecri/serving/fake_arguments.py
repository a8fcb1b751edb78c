"""The switches of `fakecri serve` that say what fake there is: its `Options` and its node."""

from __future__ import annotations

import argparse
from typing import Any, Final

import fakecri
from fakecri.control.ctl_args import FORMS, given
from fakecri.words.settings import DISK, NODE, RUNTIME

_OPTIONS: Final = ("images", "programs", "call_limit", "script")
"""Fields of `Options`, beside those of `RUNTIME`, that switches set."""


def add_fake_arguments(serve: argparse.ArgumentParser) -> None:
    """Add them. A switch that is not given leaves the default, or what the script says."""
    several = FORMS[list[str]]
    runtime = serve.add_argument_group("the runtime")
    runtime.add_argument(
        "--image", dest="images", help="an image that is there; repeat it", **several
    )
    runtime.add_argument(
        "--program", dest="programs", help="a program that images have; repeat it", **several
    )
    node = serve.add_argument_group("its node")
    for group, settings in ((runtime, RUNTIME), (node, (*NODE, *DISK))):
        for setting in settings:
            if setting.switch:
                form = FORMS[setting.kind]
                group.add_argument(setting.switch, dest=setting.field, help=setting.about, **form)


def made_of(arguments: argparse.Namespace) -> tuple[fakecri.FakeNode, dict[str, Any]]:
    """The node and the options of the fake: what switches say counts before what the script says.
    By default a served fake writes log files, and its containers see the host paths that are
    mounted into them. Raises ScriptError, ValueError."""
    fields: dict[str, Any] = {}
    described: dict[str, Any] = {}
    if arguments.script:
        # YAML takes a while to import.
        from fakecri.scripts.script import load_script, options_of

        script = load_script(arguments.script)
        fields, described = script.node_fields(), options_of(script)
    # A kubelet on this machine stats the directory of the images.
    of_node = given(arguments, *(setting.field for setting in NODE))
    node = fakecri.FakeNode(**{"image_root": "/", **fields, **of_node})
    for name, value in given(arguments, *(setting.field for setting in DISK)).items():
        setattr(node.filesystems["/"], name, value)
    by_default = {"write_logs": True, "host_mounts": True}
    of_runtime = given(arguments, *_OPTIONS, *(setting.field for setting in RUNTIME))
    return node, {**by_default, **described, **of_runtime}
