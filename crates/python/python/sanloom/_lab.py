"""Labs, their checks and their runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from . import _sanloom
from ._sanloom import Table

_Rendered = tuple[str, str]


class Source(NamedTuple):
    """A lab for the compiled part, and for other processes."""

    label: str
    """Name of the lab file in diagnostics; its folder is that of the files that it names."""
    path: str
    """Name of the lab file in commands."""
    text: str
    sets: list[tuple[str, str]]


class Diagnostic(NamedTuple):
    """A mistake or a warning of a lab file, with its place, reason and remedy."""

    severity: str
    """`error` or `warning`."""
    code: str
    """Short fixed name of the kind."""
    source: str
    """Name of the file, or `--set` with the override."""
    line: int
    """Line, counted from 1."""
    column: int
    """Column in characters, counted from 1."""
    span: tuple[int, int]
    """Start and end in bytes of UTF-8, from the beginning of the source."""
    reason: str
    remedy: str
    text: str
    """The line of the source with a caret, the reason and the remedy."""

    def __str__(self) -> str:
        return self.text


def _diagnostics(rendered: Sequence[_Rendered]) -> list[Diagnostic]:
    found = []
    for fields, text in rendered:
        values = json.loads(fields)
        start, end = values.pop("span")
        found.append(Diagnostic(**values, span=(start, end), text=text))
    return found


class LabError(ValueError):
    """A lab file or an override has mistakes."""

    diagnostics: list[Diagnostic]

    def __init__(self, message: str, rendered: Sequence[_Rendered] = ()) -> None:
        super().__init__(message, rendered)
        self.diagnostics = _diagnostics(rendered)

    def __str__(self) -> str:
        return str(self.args[0])


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run or a sweep early; `result` covers the part that was simulated."""

    def __init__(self, result: Any) -> None:
        super().__init__("the result covers what was simulated; expectations were not judged")
        self.result = result


class Progress(NamedTuple):
    """Progress of a run."""

    run_s: float
    """Simulated time since the start of the workloads."""
    duration_s: float
    """Simulated duration of the run."""
    frame_hops: int
    logging_in: bool
    """True if ports are still logging in."""


def _escape(text: str) -> str:
    for character, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot")):
        text = text.replace(character, f"&{name};")
    return text


class Check(Sequence[Diagnostic]):
    """The diagnostics of a lab, in the order of their places, and its topology."""

    def __init__(self, diagnostics: list[Diagnostic], topology: dict[str, Any] | None) -> None:
        self.diagnostics = diagnostics
        self.topology = topology
        """Topology, oversubscription and single points of failure; None for a lab with mistakes."""

    @property
    def ok(self) -> bool:
        """True if the lab has no mistakes; it may have warnings."""
        return self.topology is not None

    def __len__(self) -> int:
        return len(self.diagnostics)

    def __getitem__(self, index: Any) -> Any:
        return self.diagnostics[index]

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics) or "no mistakes"

    def _repr_html_(self) -> str:
        return f"<pre>{_escape(str(self))}</pre>"


class Report:
    """The HTML report of a run."""

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page into a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        style = "width:100%;height:45em;border:1px solid #8888"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{_escape(self.html)}"></iframe>'


class Run:
    """The results of a run. The tables have the names of the lists in `results.json`."""

    def __init__(self, results: _sanloom.Results) -> None:
        self._results = results

    def table(self, name: str) -> Table:
        """The table of a list of the results."""
        return self._results.table(name)

    def metric(self, path: str) -> float | None:
        """A number by its path, as in `[[expect]]`; `None` if the results have no such number."""
        return self._results.metric(path)

    @property
    def hosts(self) -> Table:
        """One row for each host."""
        return self.table("hosts")

    @property
    def streams(self) -> Table:
        """One row for each workload."""
        return self.table("streams")

    @property
    def links(self) -> Table:
        """One row for each link, with both directions."""
        return self.table("links")

    @property
    def ports(self) -> Table:
        """One row for each port of a switch, host or storage system."""
        return self.table("ports")

    @property
    def storage(self) -> Table:
        """One row for each storage system."""
        return self.table("storage")

    @property
    def switches(self) -> Table:
        """One row for each switch."""
        return self.table("switches")

    @property
    def series(self) -> Table:
        """One row for each step of the time series, with the columns of `series.csv`."""
        return self.table("series")

    @property
    def latency(self) -> Table:
        """Distribution of response times: one row for each bucket of the totals, hosts and streams."""
        return self.table("latency")

    @property
    def events(self) -> Table:
        """Notable events, in order of time."""
        return self.table("events")

    @property
    def faults(self) -> Table:
        """The faults of the lab."""
        return self.table("faults")

    @property
    def findings(self) -> Table:
        """Conclusions for an engineer, gravest first."""
        return self.table("findings")

    @property
    def expectations(self) -> Table:
        """Verdicts on the expectations of the lab."""
        return self.table("expectations")

    @property
    def ok(self) -> bool:
        """True if the run is whole and every expectation of the lab holds."""
        return self._results.ok

    @property
    def interrupted(self) -> bool:
        """True if the run was cut short."""
        return self._results.interrupted

    def __getitem__(self, path: str) -> float:
        """One number by its path, such as `totals.iops` or `max(hosts.*.latency.p99_us)`."""
        value = self._results.metric(path)
        if value is None:
            raise KeyError(f"the results have no single number {path}")
        return value

    def to_json(self) -> str:
        """The text of `results.json`."""
        return self._results.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The content of `results.json`."""
        values: dict[str, Any] = json.loads(self.to_json())
        return values

    def report(self) -> Report:
        """The HTML report, which a notebook shows."""
        return Report(self._results.html())

    def write(self, folder: str | os.PathLike[str]) -> str:
        """Writes the folder that `sanloom sim --out` writes; returns the path of the report."""
        return str(self._results.write(os.fspath(folder)))

    def __str__(self) -> str:
        return self._results.text()

    def __repr__(self) -> str:
        return f"<sanloom.Run {'interrupted' if self.interrupted else 'ok' if self.ok else 'failed'}>"

    def _repr_html_(self) -> str:
        return self._results._repr_html_()


def _plain(value: Any) -> Any:
    """A number of Python for a number of another package, such as numpy."""
    return value.item() if hasattr(value, "item") else value


def _spell(value: object) -> str:
    """A value as `--set` takes it."""
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_inner(element) for element in value) + "]"
    if isinstance(value, dict):
        pairs = (f"{json.dumps(str(key))} = {_inner(element)}" for key, element in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, (int, float)):
        return repr(value)
    raise TypeError(f"{type(value).__name__} has no form in a lab file; use a number, a text, a list or a dict")


def _inner(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else _spell(value)


class _Bar:
    """A line on standard error."""

    def __init__(self) -> None:
        self.width = 0

    def __call__(self, progress: Progress) -> None:
        share = progress.run_s / progress.duration_s if progress.duration_s else 1.0
        at = "logging in" if progress.logging_in else f"{progress.run_s:.3f} of {progress.duration_s:g} s simulated"
        line = f"[{'#' * int(share * 20):20}] {at}"
        print("\r" + line.ljust(self.width), end="", file=sys.stderr, flush=True)
        self.width = len(line)

    def close(self) -> None:
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)


class _Set(NamedTuple):
    key: str
    value: str


class Lab:
    """A lab file with overrides. It does not change: `set` returns another lab.

    `source` is the path of a lab file, or its text if it has several lines. The text of a lab names
    its other files relative to `folder`.
    """

    text: str
    """The text of the lab file."""

    def __init__(self, source: str | os.PathLike[str], *, folder: str | os.PathLike[str] | None = None) -> None:
        if isinstance(source, str) and "\n" in source:
            self.text = source
            self._path = "-"
            self._label = os.path.join(os.fspath(folder), "lab") if folder is not None else "lab"
        else:
            if folder is not None:
                raise TypeError("a folder belongs to a text; the folder of a lab file is its own")
            self._path = self._label = os.fspath(source)
            # Ends of lines stay, so that spans are those of the file.
            with open(self._path, encoding="utf-8", newline="") as file:
                self.text = file.read()
        self._sets: tuple[_Set, ...] = ()

    def set(self, key: str, value: object) -> Lab:
        """The lab with another value, as with `--set KEY=VALUE`."""
        lab = object.__new__(Lab)
        lab.text, lab._path, lab._label = self.text, self._path, self._label
        lab._sets = (*self._sets, _Set(key, _spell(value)))
        return lab

    def _source(self, sets: Sequence[tuple[str, str]] = ()) -> Source:
        return Source(self._label, self._path, self.text, [*((s.key, s.value) for s in self._sets), *sets])

    def check(self) -> Check:
        """Checks the lab; raises nothing for a lab with mistakes."""
        rendered, topology = _sanloom.check(self._source())
        return Check(_diagnostics(rendered), None if topology is None else json.loads(topology))

    def run(
        self,
        *,
        seed: int | None = None,
        duration: str | None = None,
        progress: bool | Callable[[Progress], object] = False,
        threads: int = 1,
        remedies: bool = True,
    ) -> Run:
        """Simulates the lab as `sanloom sim` does.

        Ctrl-C raises `Interrupted`, a KeyboardInterrupt whose `result` is the run so far. `progress`
        is a function, or True for a line on standard error. Results do not depend on `threads`.
        """
        bar = _Bar() if progress is True else None
        receive: Any = bar or (progress if callable(progress) else None)
        report = None if receive is None else lambda *values: receive(Progress(*values))
        try:
            results, error = _sanloom.simulate(
                self._source(), seed=seed, duration=duration, threads=threads, remedies=remedies, progress=report
            )
        finally:
            if bar is not None:
                bar.close()
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(Run(results)) from None
        if error is not None:
            raise error
        return Run(results)

    def __repr__(self) -> str:
        sets = "".join(f".set({s.key!r}, {s.value!r})" for s in self._sets)
        name = "text" if self._path == "-" else repr(self._path)
        return f"sanloom.Lab({name}){sets}"
