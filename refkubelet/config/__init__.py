"""The kubelet's configuration: KubeletConfiguration v1beta1 files, read strictly.

Read `kubelet_config` first, the schema, written with the functions of `fields`. `load` reads a
file, with `decode` (types), `validation` (values), and the defaults that depend on other fields.
`eviction_grammar` parses the texts of eviction thresholds into `eviction_thresholds`.
"""

from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.config.load import (
    ConfigError,
    ConfigErrors,
    defaults_without_file,
    load_config,
    parse_config,
)

__all__ = [
    "ConfigError",
    "ConfigErrors",
    "KubeletConfiguration",
    "defaults_without_file",
    "load_config",
    "parse_config",
]
