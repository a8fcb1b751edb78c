"""Directories, interface files, open files and the values in them: what all controllers share."""
