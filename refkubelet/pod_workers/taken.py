"""Takes rows of the table of pod workers, and notes them for who wants to know what was met."""

from __future__ import annotations

from contextvars import ContextVar

from refkubelet.pod_workers.transitions import Transition, WorkInput, WorkState, transition

Row = tuple[WorkState, WorkInput]
TAKEN: ContextVar[set[Row] | None] = ContextVar("TAKEN", default=None)
"""Where every row that is taken is noted; None: nobody wants to know."""


def take(state: WorkState, work_input: WorkInput) -> Transition:
    """The row of a state and an input. Raises `IllegalTransition` if there is none."""
    row = transition(state, work_input)
    taken = TAKEN.get()
    if taken is not None:
        taken.add((state, work_input))
    return row


def name_of(row: Row) -> str:
    """How a row is named in tables: its state, and its input.

    >>> name_of((WorkState.SYNCING, WorkInput.END))
    'sync: end'
    """
    return f"{row[0].value}: {row[1].value}"
