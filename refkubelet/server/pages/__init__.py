"""The pages that show what the kubelet knows. Read `pages` first."""
