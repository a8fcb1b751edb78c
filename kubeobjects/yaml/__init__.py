"""The one reader of YAML and JSON: of manifests and configurations, bodies of requests, scripts.

A text becomes nodes with places (`nodes`), within limits; nodes become JSON values (`values`), by
words that a table gives (`words`): those of Kubernetes, or the strict ones of scripts. `document`
is the entry point for files of the kubelet: values with their lines, YAML or JSON (`json_text`).

What must never happen here: an exception other than `YamlError` for any text, or work or memory
that grows faster than the text.
"""
