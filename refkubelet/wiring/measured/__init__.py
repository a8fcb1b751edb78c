"""What is measured anew at each scrape of /metrics."""
