"""Scenarios: one YAML file is one bug of a kubelet, or any other story to hold kubelets to.

`shape` says what a file may hold (`scenario`, and its parts), `reading` reads files and tells all
mistakes with their places, `case` makes a conformance case of a scenario, which `play` plays step
by step and `look` judges; `learn` makes scenarios of recorded calls. docs/scenarios.md is the page
for writers.
"""
