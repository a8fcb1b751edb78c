"""Everything that the kubelet does with files and directories that pods and users can write.

Read `opening` first: how a file is opened without waiting for it and without leaving its root.
`walking` goes through a tree of any size, `listing` reads the names in one directory, `removing`
empties a tree. No other module opens, lists, walks or removes what a pod can write: the test
`tests/project/test_file_uses.py` names the functions elsewhere that touch files, and whose
each path is.

All of it is made of short steps without waits of their own. What may be large or on a server that
does not answer is handed to `simclock.aside`, so that nothing else waits for it.
"""

from refkubelet.host.untrusted_files.listing import (
    directories_in,
    entry_status,
    is_directory,
    listed,
    looked_at,
    opened_directory,
)
from refkubelet.host.untrusted_files.opening import (
    MAX_LINKS,
    NotRegularError,
    OutsideError,
    PathBelow,
    TooLargeError,
    change_group,
    change_mode,
    fingerprint,
    holds,
    open_below,
    open_log,
    open_regular,
    opened_below,
    opened_place,
    read_place,
    read_tail,
    read_whole,
    write_in_place,
)
from refkubelet.host.untrusted_files.removing import removed, removed_now
from refkubelet.host.untrusted_files.walking import Met, shown_path, too_many, walked

__all__ = [
    "MAX_LINKS",
    "Met",
    "NotRegularError",
    "OutsideError",
    "PathBelow",
    "TooLargeError",
    "change_group",
    "change_mode",
    "directories_in",
    "entry_status",
    "fingerprint",
    "holds",
    "is_directory",
    "listed",
    "looked_at",
    "open_below",
    "open_log",
    "open_regular",
    "opened_below",
    "opened_directory",
    "opened_place",
    "read_place",
    "read_tail",
    "read_whole",
    "removed",
    "removed_now",
    "shown_path",
    "too_many",
    "walked",
    "write_in_place",
]
