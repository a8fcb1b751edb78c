"""Laws: what holds of everything that any kubelet does, whatever happens to it.

A law is a pure function over a `History`, one record of calls, requests, statuses, events and log
lines, pods and faults. `LAWS` are asked at the end of each case; `ask(LAWS, history)` asks them of
any other history.
"""

from kubelet_conformance.laws.history import History, Left, Planned, Shown
from kubelet_conformance.laws.law import Breach, Law, ask
from kubelet_conformance.laws.table import LAWS

__all__ = ["LAWS", "Breach", "History", "Law", "Left", "Planned", "Shown", "ask"]
