"""Volumes of storage drivers. `common` and `expanding` are what the cases share."""
