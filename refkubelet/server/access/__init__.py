"""Who asks, and what they may do. Read `gate` first."""
