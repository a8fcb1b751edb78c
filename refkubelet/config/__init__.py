"""The kubelet's configuration: KubeletConfiguration v1beta1 files, read strictly."""

from refkubelet.config.errors import ConfigError, ConfigErrors
from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.config.load import defaults_without_file, load_config, parse_config

__all__ = [
    "ConfigError",
    "ConfigErrors",
    "KubeletConfiguration",
    "defaults_without_file",
    "load_config",
    "parse_config",
]
