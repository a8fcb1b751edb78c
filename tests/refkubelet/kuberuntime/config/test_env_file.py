"""Variables from files in a volume (fileKeyRef): LIFE-137."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from pods import make_pod
from runtime_doubles import Events

from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.container import (
    ContainerConfigError,
)
from refkubelet.kuberuntime.config.env_file import EnvFileError, env_file_values
from refkubelet.kuberuntime.run_options import ENV_FILE_BYTES, RunFacts, run_container_options
from simclock import Ids, RealClock, Rng


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K='v'", "v"),
        ("K='v'\r\n", "v"),
        (" \tK='a b' \t# why", "a b"),
        ("\n  \n# K='no'\nOTHER='x'\nK='yes'", "yes"),
        ("K='first'\nK='second'", "first"),
        ("K='one\n\ntwo # not a comment'\nL='x'", "one\n\ntwo # not a comment"),
        ("L='one\nK='\nK='v'", "v"),
        ("K=''", ""),
        ("K= 'v'", ""),
        ("K=\t", ""),
        ("KK='v'\nk='v'", ""),
        ("", ""),
        ("K='v'\nnonsense", "v"),
    ],
)
def test_values_LIFE_137(text: str, value: str) -> None:
    assert env_file_values(text).get("K") == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense\nK='v'", "at line 1: missing '='"),
        ("# a\n='v'", "at line 2: empty variable name"),
        (" \t='v'", "at line 1: empty variable name"),
        ("K ='v'", "at line 1: whitespace before '=' is not allowed"),
        ("K=v", "at line 1: value must be enclosed in single quotes"),
        ('K="v"', "at line 1: value must be enclosed in single quotes"),
        ("L=\nK='v'", "at line 1: value must be enclosed in single quotes"),
        ("K='v' x", "at line 1: unexpected content after closing quote"),
        ("K='v\n' x", "at line 2: unexpected content after closing quote"),
        ("\nK='v\nw\n", "starting at line 2: unclosed single quote"),
        ("K='v", "starting at line 1: unclosed single quote"),
    ],
)
def test_malformed_files_LIFE_137(text: str, why: str) -> None:
    with pytest.raises(EnvFileError) as caught:
        env_file_values(text).get("K")
    assert str(caught.value) == f"invalid environment variable format {why}"


VOLUME = "pods/uid-web/volumes/kubernetes.io~empty-dir/shared"


MOUNTS = [{"name": "shared", "mountPath": "/shared"}]


def config(
    root: Path,
    *,
    volume: str = "shared",
    path: str = "env",
    optional: bool | None = None,
    mounts: Any = MOUNTS,
) -> Any:
    ref = {"volumeName": volume, "path": path, "key": "K", "optional": optional}
    main = {"name": "main", "env": [{"name": "A", "valueFrom": {"fileKeyRef": ref}}]}
    writer = {"name": "writer", "volumeMounts": mounts}
    pod = make_pod(main, init=(writer,), volumes=[{"name": "shared", "emptyDir": {}}])
    deps = RuntimeDeps(RealClock(), Ids(Rng(1)), Events())
    options = RuntimeOptions(root_dir=root, pod_logs_dir=root / "logs")
    run = run_container_options(pod.spec.containers[0], pod, RunFacts(), deps, options=options)
    return run.variables


def write(root: Path, text: str, path: str = "env") -> Path:
    file = root / VOLUME / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_file_of_the_volume_gives_the_value_LIFE_137(tmp_path: Path) -> None:
    write(tmp_path, "K='v'")
    assert config(tmp_path) == {"A": "v"}
    write(tmp_path, "K='deep'", "a/b")
    assert config(tmp_path, path="a/b") == {"A": "deep"}


def test_a_missing_key_may_be_optional_LIFE_137(tmp_path: Path) -> None:
    file = write(tmp_path, "L='v'")
    assert config(tmp_path, optional=True) == {}
    text = f'environment variable key "K" not found in file "{file}"'
    with pytest.raises(ContainerConfigError, match=re.escape(text)):
        config(tmp_path)


@pytest.mark.parametrize("optional", [None, True])
def test_an_unreadable_file_is_an_error_LIFE_137(tmp_path: Path, optional: bool | None) -> None:
    for path in ("none", "../../../outside"):
        (tmp_path / "pods/uid-web/outside").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pods/uid-web/outside").write_text("K='secret'")
        with pytest.raises(ContainerConfigError, match="couldn't parse env file"):
            config(tmp_path, path=path, optional=optional)
    write(tmp_path, "K=v")
    with pytest.raises(ContainerConfigError, match="couldn't parse env file"):
        config(tmp_path, optional=optional)


def test_a_fifo_or_too_much_is_an_error_and_no_wait_LIFE_137(tmp_path: Path) -> None:
    file = write(tmp_path, "x" * (ENV_FILE_BYTES + 1))
    with pytest.raises(ContainerConfigError, match="couldn't parse env file"):
        config(tmp_path)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ContainerConfigError, match="couldn't parse env file"):
        config(tmp_path)


def test_a_link_counts_inside_the_volume_only_LIFE_137(tmp_path: Path) -> None:
    file = write(tmp_path, "K='v'", "a/real")
    (file.parent.parent / "env").symlink_to("a/real")
    assert config(tmp_path) == {"A": "v"}
    (tmp_path / "secret").write_text("K='secret'")
    (file.parent.parent / "out").symlink_to(tmp_path / "secret")
    with pytest.raises(ContainerConfigError, match="couldn't parse env file"):
        config(tmp_path, path="out")


def test_a_volume_that_is_not_there_is_named_LIFE_137(tmp_path: Path) -> None:
    with pytest.raises(ContainerConfigError, match='cannot find the volume "other" referenced by'):
        config(tmp_path, volume="other")


def test_a_volume_that_no_container_mounts_is_not_there_LIFE_137(tmp_path: Path) -> None:
    write(tmp_path, "K='v'")
    with pytest.raises(ContainerConfigError, match='cannot find the volume "shared" referenced by'):
        config(tmp_path, mounts=[])
