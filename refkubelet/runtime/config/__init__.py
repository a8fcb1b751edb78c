"""The configuration of sandboxes and containers, field by field."""
