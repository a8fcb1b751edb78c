"""Evictions for memory, disks and processes, and the admission of pods under pressure (EVIC-)."""
