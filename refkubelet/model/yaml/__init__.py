"""Reads YAML and JSON as kubelets do, with the line of every value.

Read `document` first, the entry point; `builder` makes values of a parser's events, `scalars`
decodes unquoted words.
"""
