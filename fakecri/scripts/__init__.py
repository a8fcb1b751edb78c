"""Scripts: YAML files that say what a fake is and does.

`values` knows the place of every value, `struct_reader` makes structs of them and tells all
mistakes (for any structs, not only these), `script_shapes.Script` is what a file may hold, `script`
loads and applies it.
"""
