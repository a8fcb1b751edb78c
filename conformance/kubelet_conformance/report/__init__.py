"""Pages and tables of result files and of recorded calls: `kubelet-conformance report`, `show`,
`diff` and `matrix`.

`tables` counts, `compare` finds what differs between two runs, `showing` reads recordings, `pages`,
`side_by_side` and `html` build the pages, `page/` has their style and scripts, `commands` reads and
writes files.
"""
