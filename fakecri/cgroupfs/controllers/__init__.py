"""The controllers of v1 and v2: the interface files of each, and what they do."""
