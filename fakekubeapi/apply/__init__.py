"""Server-side apply: whose each field of an object is, and what follows from it.

`structure` says which lists and maps of an object have parts that can be owned one by one,
`field_sets` what a set of fields is and how it is written in `managedFields`, `walk` finds the
fields of an object and the difference of two, `managers` reads and writes `managedFields`,
`ownership` decides: who owns what after a write, what conflicts, what is removed. Start with
`ownership`.

All of it is pure: objects go in, new objects come out, nothing is changed in place.
"""
