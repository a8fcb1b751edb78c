"""A configuration that needs a library of an extra: told before anything runs, with the extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from refkubelet.config import ConfigError, parse_config
from refkubelet.wiring.extras import NEEDS, Need, check_extras

HEAD: Final = (
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    "address: 127.0.0.1\nfailCgroupV1: false\nfailSwapOn: false\n"
)
ASKING: Final = {
    "": "",
    "shutdownGracePeriod": "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n",
    "tracing": "tracing: {samplingRatePerMillion: 5}\n",
}
WITHOUT: Final = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from refkubelet.cli import main
sys.exit(main())
"""

each_need = pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.module)


def told(need: Need) -> list[str]:
    asks = f"{need.field}: " if need.field else ""
    return [
        f"{asks}the library {need.module} is not installed",
        f"  install it:  pip install 'refkubelet[{need.extra}]'  (a checkout: '.[{need.extra}]')",
    ]


@each_need
def test_the_command_names_the_extra_and_starts_nothing(need: Need, tmp_path: Path) -> None:
    """The runtime, which is not there, is not even looked for."""
    file = tmp_path / "kubelet.yaml"
    file.write_text(HEAD + ASKING[need.field])
    program = [sys.executable, "-c", WITHOUT.format(module=need.module)]
    done = subprocess.run(
        [*program, "run", "--config", file, "--root-dir", tmp_path / "root"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    first, *rest = done.stderr.splitlines()
    assert [first.removeprefix("refkubelet: "), *rest] == told(need)
    assert (done.returncode, (tmp_path / "root").exists()) == (2, False)


@each_need
def test_only_who_asks_needs_it(need: Need, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, need.module, None)
    for field, text in ASKING.items():
        config = parse_config((HEAD + text).encode(), "k.yaml")
        if need.field in ("", field):
            with pytest.raises(ConfigError) as refused:
                check_extras(config)
            assert str(refused.value).splitlines() == told(need)
        else:
            check_extras(config)


def test_shutdowns_by_priority_ask_too_and_a_gate_that_is_off_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dbus_fast", None)
    listed = "{priority: 1, shutdownGracePeriodSeconds: 9}"
    by_priority = f"shutdownGracePeriodByPodPriority: [{listed}]\n"
    with pytest.raises(ConfigError, match=r"refkubelet\[kubelet\]"):
        check_extras(parse_config((HEAD + by_priority).encode(), "k.yaml"))
    off = "featureGates: {GracefulNodeShutdown: false}\n"
    check_extras(parse_config((HEAD + off).encode(), "k.yaml"))


def test_all_extras_that_are_missing_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each field, however many of its libraries there are."""
    for need in NEEDS:
        monkeypatch.setitem(sys.modules, need.module, None)
    config = parse_config((HEAD + "".join(ASKING.values())).encode(), "k.yaml")
    with pytest.raises(ConfigError) as refused:
        check_extras(config)
    first = {need.field: need for need in reversed(NEEDS)}
    wanted = [line for field in ASKING for line in told(first[field])]
    assert str(refused.value).splitlines() == wanted
