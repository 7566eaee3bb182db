"""Tables, as polars, pandas and pyarrow read them."""

import csv
import json
import math

import pandas
import polars
import pyarrow
import pytest

import sanloom

LISTS = ["hosts", "streams", "links", "ports", "storage", "switches", "faults", "events", "findings", "expectations"]


def member(row, path):
    """A member of a row by its column; None if it is absent."""
    for name in path.split("."):
        if not isinstance(row, dict) or name not in row:
            return None
        row = row[name]
    return row


def plain(value):
    """A value of JSON as a table has it: a map is a list of pairs."""
    return [{"key": key, "value": value[key]} for key in value] if isinstance(value, dict) else value


@pytest.mark.parametrize("name", LISTS)
def test_a_table_has_the_values_of_its_list(run, name):
    expected = run.to_dict()[name]
    table = run.table(name)
    assert len(table) == len(expected)
    for column in table.columns:
        ours = table[column]
        for row, value in zip(expected, ours):
            assert plain(member(row, column)) == value or column == "latency_histogram", column


@pytest.mark.parametrize("name", [*LISTS, "series", "latency"])
def test_three_readers_see_the_same_table(run, name):
    table = run.table(name)
    frames = polars.DataFrame(table), pandas.DataFrame.from_arrow(table), pyarrow.table(table)
    expected = table.to_dict()
    assert frames[2].to_pydict() == expected
    assert list(frames[0].columns) == list(frames[1].columns) == table.columns
    for column, values in expected.items():
        assert frames[0][column].to_list() == values, column
        if all(isinstance(value, (int, float, str)) for value in values):
            assert frames[1][column].tolist() == values, column
    assert table.to_polars().equals(frames[0]) and table.to_pandas().equals(frames[1])


def test_columns_do_not_depend_on_the_rows(run, lab):
    quiet = lab.run(remedies=False)
    assert len(quiet.events) == 0 < len(run.events)
    for name in [*LISTS, "latency"]:
        full, empty = (pyarrow.table(of.table(name)).schema for of in (run, quiet))
        assert full == empty, name


def test_a_series_is_not_copied(run):
    def addresses(table):
        return [table.column(name).chunk(0).buffers()[1].address for name in table.column_names[1:]]

    assert addresses(pyarrow.table(run.series)) == addresses(pyarrow.table(run.series))
    table = run.hosts
    assert addresses(pyarrow.table(table))[1:] == addresses(pyarrow.table(table))[1:]


def test_a_table_outlives_its_run(lab):
    frame = pyarrow.table(lab.run(remedies=False).series)
    again = pyarrow.table(lab.run(remedies=False).series)
    assert frame.equals(again)


def test_the_series_are_those_of_the_file(run, tmp_path):
    run.write(tmp_path)
    with open(tmp_path / "series.csv", newline="") as file:
        names, *rows = csv.reader(file)
    table = run.series.to_dict()
    assert names == list(table)
    assert [[float(cell) for cell in row] for row in rows] == [list(row) for row in zip(*table.values())]


def test_the_distribution_of_latencies_has_every_request(run):
    table = run.latency.to_dict()
    counted = {}
    for of, name, count in zip(table["of"], table["name"], table["count"]):
        counted[of, name] = counted.get((of, name), 0) + count
    values = run.to_dict()
    assert counted["totals", ""] == values["totals"]["latency"]["count"]
    for host in values["hosts"]:
        assert counted.get(("hosts", host["name"]), 0) == host["latency"]["count"]


def test_a_table_survives_ipc(run):
    assert sanloom.Table.from_ipc(run.links.to_ipc()).to_dict() == run.links.to_dict()


def test_a_number_is_found_by_its_path(run):
    assert run["totals.iops"] == run.to_dict()["totals"]["iops"]
    assert run["max(hosts.*.latency.p99_us)"] == max(run.hosts["latency.p99_us"])
    with pytest.raises(KeyError):
        run["totals.nothing"]
    with pytest.raises(KeyError):
        run.table("nothing")
    assert math.isfinite(json.loads(run.to_json())["totals"]["iops"])
