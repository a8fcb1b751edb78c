"""The kubelet's configuration: KubeletConfiguration v1beta1 files.

Read `schema` first: `kubelet_config` in it, written with the functions of `fields`. `load` puts a
configuration together of a file, `drop_ins` and `flags`, with `decode` (types), `validation`
(values), and the defaults that depend on other fields; `not_acted_on` names what has no effect;
`credentials` are the files of credential providers.
`eviction_grammar` parses the texts of eviction thresholds into `eviction_thresholds`.
"""

from refkubelet.config.flags import Given
from refkubelet.config.load import (
    defaults_without_file,
    load_config,
    parse_config,
)
from refkubelet.config.schema.errors import ConfigError, ConfigErrors
from refkubelet.config.schema.kubelet_config import KubeletConfiguration

__all__ = [
    "ConfigError",
    "ConfigErrors",
    "Given",
    "KubeletConfiguration",
    "defaults_without_file",
    "load_config",
    "parse_config",
]
