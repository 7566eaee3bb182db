"""Sweeps over values and seeds, on any executor."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from typing import Any, Protocol

from . import _sanloom
from ._lab import Interrupted, Lab, LabError, Source, _plain, _spell
from ._sanloom import Table

_Unit = tuple[Source, list[str]]


def _work(unit: _Unit) -> bytes:
    """Simulates one point in any process."""
    source, metrics = unit
    row = _sanloom.point(source, metrics)
    if row is None:
        raise CancelledError
    return row


class _Submits(Protocol):
    """Part of `concurrent.futures.Executor` that a sweep needs."""

    def submit(self, function: Callable[[_Unit], bytes], unit: _Unit, /) -> Future[bytes]: ...


class _OfPool:
    """A pool with `apply_async`, such as `ray.util.multiprocessing.Pool`, as an executor."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def submit(self, function: Callable[[_Unit], bytes], unit: _Unit, /) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_running_or_notify_cancel()
        self._pool.apply_async(function, (unit,), callback=future.set_result, error_callback=future.set_exception)
        return future


def sweep(
    lab: Lab,
    grid: Mapping[str, Iterable[object]],
    seeds: Sequence[int] | None = None,
    executor: Executor | Any = None,
    *,
    metrics: Sequence[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Simulates every combination of the values, with every seed; one row for each.

    The rows have the order of the grid, and the last key changes fastest, then the seed. They do not
    depend on the executor: None for threads of this process, or any `concurrent.futures.Executor`,
    such as a `ProcessPoolExecutor` or `Client.get_executor()` of Dask, or a pool with `apply_async`, such
    as `ray.util.multiprocessing.Pool`.

    A lost worker costs its points only: if the pool of the executor breaks, the lost points run again,
    each in a process of its own. The column `error` has the reason for a point that is lost there too,
    or that the executor gave up.
    Ctrl-C raises `Interrupted`, whose `result` has the finished rows.
    """
    keys = list(grid)
    values = [[_plain(value) for value in grid[key]] for key in keys]
    seeds = None if seeds is None else [_plain(seed) for seed in seeds]
    columns = list(_sanloom.default_metrics() if metrics is None else metrics)
    settings = list(itertools.product(*values, *([] if seeds is None else [seeds])))
    names = [*keys, *([] if seeds is None else ["run.seed"])]
    sources = [
        lab._source([(key, _spell(value)) for key, value in zip(names, setting)]) for setting in settings
    ]
    # As the command does, all points are checked before the first simulation.
    with ThreadPoolExecutor(os.cpu_count() or 1) as checkers:
        for point, rendered in enumerate(checkers.map(_sanloom.mistakes, sources)):
            if rendered:
                at = ", ".join(f"{key}={value}" for key, value in zip(names, settings[point]))
                raise LabError("\n".join([*(text for _, text in rendered), f"at point {point}: {at}"]), rendered)
    units: list[_Unit] = [(source, columns) for source in sources]
    outcomes: dict[int, bytes | str] = {}

    def finished(point: int, outcome: bytes | str) -> None:
        outcomes[point] = outcome
        if progress is not None:
            progress(len(outcomes), len(units))

    try:
        if executor is None:
            _threads(units, finished)
        else:
            submits = executor if hasattr(executor, "submit") else _OfPool(executor)
            lost = _on(submits, dict(enumerate(units)), finished)
            _again(lost, finished)
    except KeyboardInterrupt:
        raise Interrupted(_table(names, settings, columns, outcomes)) from None
    return _table(names, settings, columns, outcomes)


def _threads(units: list[_Unit], finished: Callable[[int, bytes], object]) -> None:
    stop = _sanloom.Stop()
    executor = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        futures = {executor.submit(_sanloom.point, *unit, stop): point for point, unit in enumerate(units)}
        for future in as_completed(futures):
            row = future.result()
            if row is not None:
                finished(futures[future], row)
    finally:
        stop.set()
        executor.shutdown(cancel_futures=True)


def _on(
    executor: _Submits, units: dict[int, _Unit], finished: Callable[[int, bytes | str], object]
) -> dict[int, _Unit]:
    """Runs points; returns those that were lost because the executor broke."""
    futures: dict[Future[bytes], int] = {}
    lost = {}
    try:
        for point, unit in units.items():
            try:
                futures[executor.submit(_work, unit)] = point
            except BrokenExecutor:
                lost[point] = unit
        for future in as_completed(futures):
            point = futures[future]
            try:
                finished(point, future.result())
            except BrokenExecutor:
                lost[point] = units[point]
            except (LabError, ValueError):
                raise
            except Exception as error:
                # Ray wraps the exceptions of its workers, and its pool wraps these again.
                inner = getattr(error, "underlying", error)
                cause = getattr(inner, "cause", inner)
                if isinstance(cause, (LabError, ValueError)):
                    raise cause from None
                finished(point, f"{type(error).__name__}: {error}")
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return lost


def _again(lost: dict[int, _Unit], finished: Callable[[int, bytes | str], object]) -> None:
    """Runs lost points again, each in a process of its own, so that none can lose another."""
    if not lost:
        return
    import pickle
    import subprocess

    processes: list[subprocess.Popen[bytes]] = []

    def alone(unit: _Unit) -> bytes | str:
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, "-m", "sanloom._point"], stdin=pipe, stdout=pipe) as process:
            processes.append(process)
            output, _ = process.communicate(pickle.dumps(unit))
        if process.returncode != 0:
            return f"the worker of this point was lost twice; the second ended with {process.returncode}"
        row: bytes = pickle.loads(output)
        return row

    executor = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        futures = {executor.submit(alone, unit): point for point, unit in lost.items()}
        for future in as_completed(futures):
            finished(futures[future], future.result())
    finally:
        for process in processes:
            process.kill()
        executor.shutdown(cancel_futures=True)


def _table(
    names: list[str], settings: list[tuple[Any, ...]], columns: list[str], outcomes: dict[int, bytes | str]
) -> Table:
    rows = []
    for point, outcome in sorted(outcomes.items()):
        row: dict[str, object] = {"point": point}
        for name, value in zip(names, settings[point]):
            row[name] = value if isinstance(value, (bool, int, float, str)) else _spell(value)
        if isinstance(outcome, bytes):
            row.update((column, values[0]) for column, values in Table.from_ipc(outcome).to_dict().items())
            row["error"] = None
        else:
            row.update((column, None) for column in columns)
            row["error"] = outcome
        rows.append(row)
    example = {"point": 0, **dict.fromkeys(names), **dict.fromkeys(columns, 0.5), "error": ""}
    return _sanloom.table_of(json.dumps(rows), json.dumps(example))
