"""Reading a kubeconfig: lightkube does it, this turns its failures into one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from refkubelet.config.errors import ConfigError

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig


def read_kubeconfig(path: str | Path) -> SingleConfig:
    """The current context of that file. Raises `ConfigError` naming the file."""
    import msgspec
    import yaml
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.core.exceptions import ConfigError as LightkubeError

    try:
        config = KubeConfig.from_file(path).get()
    except FileNotFoundError:
        raise ConfigError(f"kubeconfig {path}: no such file") from None
    except OSError as e:
        raise ConfigError(f"kubeconfig {path}: {e.strerror}") from None
    except LightkubeError as e:
        reason = "no such file" if not Path(path).exists() else str(e)
        raise ConfigError(f"kubeconfig {path}: {reason}") from None
    except (KeyError, TypeError, AttributeError):
        wanted = "wanted a mapping with clusters, users, contexts and current-context"
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig: {wanted}") from None
    except (yaml.YAMLError, msgspec.ValidationError) as e:
        reason = " ".join(str(e).split())
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig: {reason}") from None
    if config is None:
        raise ConfigError(f"kubeconfig {path}: current-context is missing")
    return config
