"""The kubelet's configuration: KubeletConfiguration v1beta1 files, read strictly.

`kubelet_config` is the schema, written with the functions of `fields`; `load` reads a file, by way
of `decode` (types), `validation` (values) and the defaults that depend on other fields. The
eviction thresholds are texts in the file; `eviction_grammar` makes `eviction_thresholds` of them.
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
