"""Sweeps on several executors."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import sanloom
from sanloom import _sweep

GRID = {"workload.reads.depth": [1, 4, 16], "workload.reads.size": ["4KiB", "32KiB"]}
SEEDS = [1, 2]


def processes(count):
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


@pytest.fixture
def swept(lab):
    return sanloom.sweep(lab, GRID, SEEDS).to_dict()


def test_rows_have_the_order_of_the_grid(swept):
    assert swept["point"] == list(range(12))
    assert swept["workload.reads.depth"] == [1] * 4 + [4] * 4 + [16] * 4
    assert swept["workload.reads.size"] == ["4KiB", "4KiB", "32KiB", "32KiB"] * 3
    assert swept["run.seed"] == SEEDS * 6
    assert swept["error"] == [None] * 12


def test_a_row_has_the_numbers_of_its_run(lab, swept):
    run = lab.set("workload.reads.depth", 4).set("workload.reads.size", "32KiB").run(seed=2, remedies=False)
    point = 7
    assert swept["totals.iops"][point] == run["totals.iops"]
    assert swept["totals.latency.p99_us"][point] == run["totals.latency.p99_us"]


def test_the_shards_of_the_command_have_the_same_rows(command, swept):
    grid = ["--set", "run.warmup=5ms", "--set", "run.duration=30ms"]
    for key, values in {**GRID, "run.seed": SEEDS}.items():
        grid += ["--set", f"{key}={','.join(map(str, values))}"]
    rows = []
    for shard in ("1/2", "2/2"):
        rows += json.loads(command("sweep", "examples/core-edge.toml", *grid, "--json", "--quiet", "--shard", shard))
    rows.sort(key=lambda row: row["point"])
    assert [row["point"] for row in rows] == swept["point"]
    for metric in rows[0]["metrics"]:
        assert [row["metrics"][metric] for row in rows] == swept[metric], metric


def test_processes_and_dask_workers_have_the_same_rows(lab, swept):
    from dask.distributed import Client, LocalCluster

    with processes(2) as executor:
        assert sanloom.sweep(lab, GRID, SEEDS, executor).to_dict() == swept
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        assert sanloom.sweep(lab, GRID, SEEDS, client.get_executor()).to_dict() == swept


def test_ray_workers_have_the_same_rows_and_the_same_mistakes(lab, swept):
    import ray
    from ray.util.multiprocessing import Pool

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        with Pool(2) as pool:
            assert sanloom.sweep(lab, GRID, SEEDS, pool).to_dict() == swept
            with pytest.raises(ValueError, match="totals.iops"):
                sanloom.sweep(lab, {"workload.reads.depth": [1]}, None, pool, metrics=["totals.iop"])
    finally:
        ray.shutdown()


def test_a_pool_has_the_same_rows(lab, swept):
    with get_context("spawn").Pool(2) as pool:
        assert sanloom.sweep(lab, GRID, SEEDS, pool).to_dict() == swept


def test_a_lost_worker_costs_its_points_only(lab, swept):
    with processes(2) as executor:
        killed = []

        def kill(done, total):
            if not killed:
                killed.append(next(iter(executor._processes)))
                os.kill(killed[0], signal.SIGKILL)

        assert sanloom.sweep(lab, GRID, SEEDS, executor, progress=kill).to_dict() == swept
    assert killed


class Fatal:
    """A point that ends each process that receives it."""

    def __reduce__(self):
        return os._exit, (9,)


def test_a_point_that_is_lost_twice_is_reported_alone(lab):
    found = {}
    unit = (lab._source(), ["totals.iops"])
    with processes(1) as executor:
        lost = _sweep._on(executor, {0: Fatal(), 1: unit}, found.__setitem__)
    assert set(lost) == {0, 1} and found == {}
    _sweep._again(lost, found.__setitem__)
    assert "lost twice" in found[0] and "9" in found[0]
    table = _sweep._table(["a"], [(1,), (2,)], ["totals.iops"], found).to_dict()
    assert table["totals.iops"] == [None, lab.run(remedies=False)["totals.iops"]]
    assert table["error"] == [found[0], None]


def test_numbers_of_numpy_are_numbers(lab, swept):
    import numpy

    grid = {**GRID, "workload.reads.depth": numpy.array([1, 4, 16])}
    assert sanloom.sweep(lab, grid, numpy.array(SEEDS)).to_dict() == swept
    shares = sanloom.sweep(lab, {"workload.reads.read_share": numpy.linspace(0, 1, 3)}).to_dict()
    assert shares["workload.reads.read_share"] == [0.0, 0.5, 1.0]


def test_a_mistake_at_one_point_ends_the_sweep_before_it_begins(lab):
    done = []
    with pytest.raises(sanloom.LabError, match="point 1"):
        sanloom.sweep(lab, {"workload.reads.depth": [1, "many"]}, progress=lambda *counts: done.append(counts))
    assert done == []


def test_an_unknown_metric_has_a_remedy(lab):
    with pytest.raises(ValueError, match="totals.iops"):
        sanloom.sweep(lab, {"workload.reads.depth": [1]}, metrics=["totals.iop"])


def test_columns_are_chosen_by_path(lab):
    table = sanloom.sweep(lab, {"workload.reads.depth": [1, 2]}, metrics=["max(links.*.*.utilisation)"])
    assert table.columns == ["point", "workload.reads.depth", "max(links.*.*.utilisation)", "error"]


LONG = """
import sanloom
lab = sanloom.Lab("examples/core-edge.toml").set("run.warmup", "5ms")
told = lambda done, total: print("done", flush=True)
try:
    sanloom.sweep(lab, {"run.duration": ["10ms", "1000s", "1001s", "1002s"]}, progress=told)
except KeyboardInterrupt as interrupted:
    print(interrupted.result["point"])
"""


def test_ctrl_c_leaves_the_finished_rows(lab):
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "done\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "[0]\n"
    assert process.returncode == 0
