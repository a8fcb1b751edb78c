"""The schema of a KubeletConfiguration, and the kinds of its fields."""
