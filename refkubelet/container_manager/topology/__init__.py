"""The topology manager: merges the hints of all providers and admits pods by them (CG-083). Read
`manager` first; `merge` and `policies` decide.
"""
