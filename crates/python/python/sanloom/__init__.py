"""Design, simulate and run storage area networks.

The lab file is the model::

    import sanloom

    lab = sanloom.Lab("san.toml").set("workload.reads.depth", 8)
    run = lab.run(seed=1)
    run.hosts.to_polars()
"""

from ._lab import Check, Diagnostic, Interrupted, Lab, LabError, Progress, Report, Run
from ._live import Live, RequestError, connect
from ._sanloom import Table
from ._sweep import sweep

__all__ = [
    "Check",
    "Diagnostic",
    "Interrupted",
    "Lab",
    "LabError",
    "Live",
    "Progress",
    "Report",
    "RequestError",
    "Run",
    "Table",
    "connect",
    "sweep",
]
