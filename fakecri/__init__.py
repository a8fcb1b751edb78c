"""A programmable fake CRI runtime."""
