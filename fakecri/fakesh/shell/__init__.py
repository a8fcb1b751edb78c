"""The small `sh` that is in every fake container: grammar, words, arithmetic, commands.

`scan` and `grammar` are pure; `words` and `arithmetic` give words their values; `interpreter` runs
what was parsed, `control` its conditions and loops; `builtins` has the commands that change the
shell itself. What the language lacks here (here-documents, arrays, `[[`) is refused by name, never
done by half.
"""
