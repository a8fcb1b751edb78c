"""Reading YAML and JSON as kubelets do, with the line of every value.

`document` is what readers of files call; `builder` makes values of a parser's events, `scalars`
says what an unquoted word means.
"""
