"""What a scenario file may hold. Read `scenario` first."""
