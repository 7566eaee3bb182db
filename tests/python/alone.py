"""The main job in an environment that has nothing but the wheel."""

import importlib.util
import sys

import sanloom

for absent in ("numpy", "pandas", "polars", "pyarrow"):
    assert importlib.util.find_spec(absent) is None, absent
lab = sanloom.Lab("examples/core-edge.toml").set("run.warmup", "5ms").set("run.duration", "30ms")
assert lab.check().ok
run = lab.run(seed=1)
hosts = run.hosts.to_dict()
assert hosts["name"] == [f"server{number}" for number in range(1, 9)]
assert hosts["iops"] == [host["iops"] for host in run.to_dict()["hosts"]]
assert 'id="topology"' in run.report().html
swept = sanloom.sweep(lab, {"workload.reads.depth": [1, 2]})
assert swept["totals.iops"][0] < swept["totals.iops"][1]
try:
    run.hosts.to_polars()
except ImportError:
    sys.exit(0)
sys.exit("polars is absent, and to_polars() does not say so")
