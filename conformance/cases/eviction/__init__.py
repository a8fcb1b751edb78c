"""Eviction and admission under pressure (EVIC-)."""
