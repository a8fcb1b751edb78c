"""Flags and configuration that a user gives to the kubelet under test (`--kubelet-flag`,
`--kubelet-config`), beside those of the suite. What the suite sets itself is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

FIELDS: Final = frozenset(
    {
        *("address", "port", "readOnlyPort", "healthzPort", "healthzBindAddress"),
        *("authentication", "authorization", "containerRuntimeEndpoint", "imageServiceEndpoint"),
        *("staticPodPath", "podLogsDir", "volumePluginDir"),
        *("cgroupsPerQOS", "enforceNodeAllocatable", "cgroupDriver", "cgroupRoot"),
    }
)
"""Of the KubeletConfiguration, what the suite sets, for each case anew."""
FLAGS: Final = frozenset(
    {
        *("config", "config-dir", "root-dir", "hostname-override", "kubeconfig", "node-ip"),
        *("cert-dir", "pod-manifest-path", "anonymous-auth"),
        *("image-credential-provider-config", "image-credential-provider-bin-dir"),
        *("authentication-token-webhook", "authorization-mode", "cgroups-per-qos"),
        *(re.sub(r"([A-Z])", r"-\1", field).lower() for field in FIELDS),
    }
)
"""Flags that the suite gives itself, or that stand for FIELDS."""
KIND: Final = "KubeletConfiguration"


class OptionRefused(ValueError):
    """A flag or a file cannot be given to the kubelet; the text says why."""


def check_flag(flag: str) -> None:
    """Raise OptionRefused unless the kubelet can have that flag, `--name` or `--name=value`."""
    name = flag.removeprefix("--").partition("=")[0]
    if not flag.startswith("--") or not re.fullmatch(r"[a-z0-9-]+", name):
        raise OptionRefused(
            f"--kubelet-flag={flag}: wanted one flag with its value, such as --kubelet-flag=--v=4"
        )
    if name in FLAGS:
        raise OptionRefused(
            f"--kubelet-flag={flag}: --{name} is set by the suite, for each case anew"
        )


def read_config(path: Path) -> Mapping[str, Any]:
    """The fields of a KubeletConfiguration, of YAML or JSON. Raises OptionRefused, also for a field
    that is mistyped."""
    option = f"--kubelet-config {path}"
    try:
        fields = yaml.safe_load(path.read_text())
    except OSError as error:
        raise OptionRefused(f"{option}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionRefused(f"{option}: no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(fields, Mapping) or fields.get("kind", KIND) != KIND:
        raise OptionRefused(f"{option}: wanted the fields of a {KIND}")
    if taken := sorted(FIELDS & fields.keys()):
        raise OptionRefused(
            f"{option}: {', '.join(taken)}: set by the suite, for each case anew; leave it out"
        )
    own = {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
    if mistyped := _mistyped(own):
        raise OptionRefused(f"{option}: {'; '.join(mistyped)}")
    return own


def _mistyped(fields: Mapping[str, Any]) -> list[str]:
    """Fields that are nearly one of those of 1.36: kubelets take them without a word. Others may be
    those of a newer kubelet, and values are the kubelet's to refuse."""
    # Here, not above: few runs have a configuration of the user's.
    from kubeobjects.yaml.document import Document
    from refkubelet.config import ConfigError
    from refkubelet.config.decode import struct_of
    from refkubelet.config.schema.kubelet_config import KubeletConfiguration

    unknown: list[str] = []
    with suppress(ConfigError):
        struct_of(Document(dict(fields)), KIND, KubeletConfiguration, unknown)
    near = [text for text in unknown if "did you mean" in text]
    return [text.removeprefix(f"{KIND}: ").replace(", without effect", "") for text in near]
