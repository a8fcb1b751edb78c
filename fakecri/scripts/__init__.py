"""Rules as YAML files.

What must never happen here: a mistake that is told without its file and place.
"""
