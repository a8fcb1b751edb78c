"""Certificates and TLS of the main port."""
