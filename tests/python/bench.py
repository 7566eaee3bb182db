"""Speed of the package; needs a quiet machine with two cores: tests/python/bench.py [NAME]...

Prints what it measures, and fails if a limit is missed. `cargo xtask soak` runs it.
"""

import io
import multiprocessing
import pathlib
import statistics
import sys
import time

import sanloom

ROOT = pathlib.Path(__file__).parents[2]


def readers():
    """A table of a million rows in polars takes less than 0.1 s."""
    import polars
    import pyarrow

    rows = 1_000_000
    columns = {
        "at_s": pyarrow.array([row * 0.01 for row in range(rows)]),
        "link": pyarrow.array([f"isl{row % 16}" for row in range(rows)]),
        "frames": pyarrow.array(range(rows)),
        "utilisation": pyarrow.array([row % 1000 / 1000 for row in range(rows)]),
    }
    table = pyarrow.table(columns)
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    ours = sanloom.Table.from_ipc(sink.getvalue())
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        frame = polars.DataFrame(ours)
        times.append(time.perf_counter() - begun)
    assert frame.shape == (rows, 4) and frame["frames"][-1] == rows - 1
    took = statistics.median(times)
    print(f"polars: {rows} rows and 4 columns in {took * 1e3:.0f} ms (limit 100 ms)")
    return took < 0.1


def simulate(depth):
    """A point of the sweep, without Dask."""
    lab = sanloom.Lab(ROOT / "examples/core-edge.toml").set("run.duration", "5s")
    return lab.set("workload.reads.depth", depth).run(remedies=False).metric("totals.iops")


def alone(count, depths):
    """Time of the points in processes of this machine, without any scheduler."""
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        pool.map(abs, range(64))
        begun = time.perf_counter()
        pool.map(simulate, depths, chunksize=1)
        return time.perf_counter() - begun


def workers():
    """A sweep on two Dask workers is at least 1.8 times as fast as on one.

    Two processes without a scheduler are the ceiling of the machine in the same slices.
    """
    from dask.distributed import Client, LocalCluster

    lab = sanloom.Lab(ROOT / "examples/core-edge.toml").set("run.duration", "5s")
    depths = [2, 4, 8, 16] * 2
    grid = {"workload.reads.depth": depths}

    def sweep(count):
        options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            client.wait_for_workers(count)
            executor = client.get_executor()
            # The first use of a worker imports the package.
            sanloom.sweep(lab.set("run.duration", "20ms").set("run.warmup", "0s"), {"run.seed": [1, 2, 3, 4]}, None, executor)
            begun = time.perf_counter()
            rows = sanloom.sweep(lab, grid, None, executor).to_dict()
            return time.perf_counter() - begun, rows

    # Slices alternate, so that a change of the machine's speed affects both.
    ratios, ceilings = [], []
    for number in range(5):
        order = (1, 2) if number % 2 == 0 else (2, 1)
        taken = {count: (*sweep(count), alone(count, depths)) for count in order}
        assert taken[1][1] == taken[2][1], "rows do not depend on the number of workers"
        ratios.append(taken[1][0] / taken[2][0])
        ceilings.append(taken[1][2] / taken[2][2])
        print(
            f"dask: one worker {taken[1][0]:.2f} s, two workers {taken[2][0]:.2f} s, ratio {ratios[-1]:.2f};"
            f" processes without it {taken[1][2]:.2f} s, {taken[2][2]:.2f} s, ratio {ceilings[-1]:.2f}"
        )
    ratio, ceiling = statistics.median(ratios), statistics.median(ceilings)
    print(f"dask: median of the ratios {ratio:.2f} (limit 1.8), of the ceiling of the machine {ceiling:.2f}")
    return ratio >= 1.8


PARTS = {"readers": readers, "workers": workers}

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(PARTS)
    missed = [name for name in chosen if not PARTS[name]()]
    if missed:
        sys.exit(f"the limit is missed: {', '.join(missed)}")
