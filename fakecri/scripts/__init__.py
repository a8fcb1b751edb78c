"""Rules as YAML files."""
