"""The health protocol of gRPC: its two messages (the method is grpc.health.v1.Health/Check)."""
