"""The cases: one package per area, one module per behaviour."""
