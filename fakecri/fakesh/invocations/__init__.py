"""One run of one program in a fake container: its streams, files, environment and processes.

Nothing here knows containers or the runtime: an invocation has what a program can see. What must
never happen here: a program touches the machine that the fake really runs on, but for the
host paths that are mounted into its container (`host_directory`).
"""
