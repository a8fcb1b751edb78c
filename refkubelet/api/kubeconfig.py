"""Reading a kubeconfig: lightkube reads it; here its errors become one line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError as LightkubeError

from refkubelet.config import ConfigError

VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Of credential plug-ins."""


def read_kubeconfig(path: str | Path) -> SingleConfig:
    """The current context of that file. Raises `ConfigError` naming the file."""
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
        expected_form = "wanted a mapping with clusters, users, contexts and current-context"
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig: {expected_form}") from None
    except (yaml.YAMLError, msgspec.ValidationError) as e:
        reason = " ".join(str(e).split())
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig: {reason}") from None
    if config is None:
        raise ConfigError(f"kubeconfig {path}: current-context is missing")
    if config.user is None:
        config = config._replace(user=User())  # requests without credentials
    assert config.user is not None
    if (plugin := config.user.exec) is not None:
        if plugin.apiVersion not in VERSIONS:
            raise ConfigError(
                f"kubeconfig {path}: exec: apiVersion {plugin.apiVersion} of a credential plug-in: "
                f"wanted {' or '.join(VERSIONS)}"
            )
        if "/" in plugin.command:  # else it is looked for in PATH
            plugin.command = str(config.abs_file(plugin.command))
    if config.user.token_file:
        config.user.token_file = str(config.abs_file(config.user.token_file))
        _check_token(path, config.user.token_file)
    return config


def showing(config: SingleConfig, pair: tuple[Path, Path] | None) -> SingleConfig:
    """The same server and user, with the client certificate of these files in place of its own;
    None: without a certificate."""
    certificate, key = map(str, pair) if pair is not None else (None, None)
    user = msgspec.structs.replace(
        config.user or User(),
        client_cert=certificate,
        client_key=key,
        client_cert_data=None,
        client_key_data=None,
    )
    return config._replace(user=user)


def _check_token(path: str | Path, file: str) -> None:
    """The file of a token must be readable at the start; later it may be missing for a moment.
    Raises `ConfigError`."""
    try:
        token = Path(file).read_text().strip()
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is no text"
        raise ConfigError(f"kubeconfig {path}: tokenFile {file}: {reason}") from None
    if not token:
        raise ConfigError(f"kubeconfig {path}: tokenFile {file}: it is empty")
