"""What the rules of all resources share. Read `strategy` first."""
