"""The pytest plugin: a `fakecri` fixture for other projects' tests."""
