"""Server-side apply: which manager owns which field of an object, and what follows from it.

`structure` says which lists and maps of an object have parts that can be owned one by one,
`field_sets` how a set of fields is written in `managedFields`; `walk` finds the fields of an object
and the differences between two; `managers` reads and writes `managedFields`; `ownership` decides
who owns what after a write, what conflicts and what is removed. Start with `ownership`.

All of it is pure: objects go in, new objects come out, nothing is changed in place.
"""
