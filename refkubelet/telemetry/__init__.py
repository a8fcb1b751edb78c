"""What a kubelet tells of itself: how its log is written (`log_format`), what is counted
(`metrics`), what took how long (`spans`, and `otel`, which sends them to a collector)."""
