"""The CRI as Python messages and gRPC services, and the messages of gRPC's health protocol:
generated from protos/ (tox -e protos)."""
