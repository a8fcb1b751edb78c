"""Checks of a KubeletConfiguration. Read `whole` first, which calls all others."""
