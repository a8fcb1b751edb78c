"""The small `sh` that is in every fake container: grammar, words, arithmetic, commands.

`scan` and `grammar` are pure, `words` and `arithmetic` give words their values, `interpreter` runs
what was parsed, `builtins` are the commands that change the shell itself. What the language cannot
do here (here-documents, arrays, `[[`) is refused by name, never half-done.
"""
