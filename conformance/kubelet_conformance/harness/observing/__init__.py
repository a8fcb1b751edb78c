"""How the harness sees the node of a case: snapshots, recorded calls, time, and failures that say
what was seen."""
