"""Checks and runs of labs."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import sanloom


def reproducible(text):
    """The text of results without the part that depends on the machine."""
    text, engine = text.split('"engine":')
    assert "cpu_s" in engine
    return text


@pytest.mark.parametrize("example", ["core-edge", "slow-drain"])
def test_results_equal_those_of_the_command_to_the_last_bit(command, example):
    path = f"examples/{example}.toml"
    expected = command("sim", path, "--no-report", "--json", "--seed", 7)
    run = sanloom.Lab(path).run(seed=7)
    assert reproducible(run.to_json()) == reproducible(expected)
    values = run.to_dict()
    values.pop("engine")
    both = json.loads(expected)
    both.pop("engine")
    assert values == both


def test_an_override_means_the_same_as_in_the_command(command, lab):
    sets = ["--set", "run.warmup=5ms", "--set", "run.duration=30ms", "--set", "workload.reads.depth=1"]
    expected = command("sim", "examples/core-edge.toml", "--no-report", "--json", *sets)
    run = lab.set("workload.reads.depth", 1).run()
    assert reproducible(run.to_json()) == reproducible(expected)
    assert run["totals.latency.mean_us"] < lab.run()["totals.latency.mean_us"]


def test_a_lab_does_not_change(lab):
    before = repr(lab)
    lab.set("workload.reads.depth", 3)
    assert repr(lab) == before


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_diagnostic_points_at_its_place(tmp_path, end):
    text = '[lab]\nname = "ü"\n[switch.a]\nquueing = "fifo"\n[host.h]\n'.replace("\n", end)
    file = tmp_path / "lab.toml"
    file.write_bytes(text.encode())
    check = sanloom.Lab(file).check()
    assert check[0].source == str(file)
    assert not check and not check.ok and check.topology is None
    mistake = next(found for found in check if found.code == "unknown-key")
    assert (mistake.severity, mistake.line, mistake.column) == ("error", 4, 1)
    start, end = mistake.span
    assert text.encode()[start:end] == b"quueing"
    assert "queueing" in mistake.remedy and "^" in str(mistake)
    with pytest.raises(sanloom.LabError) as error:
        sanloom.Lab(file).run()
    assert mistake in error.value.diagnostics
    of_text = [found._replace(source="", text="") for found in sanloom.Lab(text).check()]
    assert of_text == [found._replace(source="", text="") for found in check]


def test_a_correct_lab_has_its_topology(lab, command):
    check = lab.check()
    assert check and list(check) == []
    assert check.topology == json.loads(command("check", "examples/core-edge.toml", "--json"))["topology"]


def test_runs_in_two_threads_equal_runs_in_sequence(lab):
    expected = [reproducible(lab.run(seed=seed).to_json()) for seed in (1, 2)]
    found = [None, None]

    def work(index):
        found[index] = reproducible(lab.run(seed=index + 1).to_json())

    threads = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_another_thread_works_during_a_run(lab):
    ticks = 0
    done = threading.Event()

    def count():
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=count)
    thread.start()
    during = []
    lab.set("run.duration", "2s").run(progress=lambda _: during.append(ticks))
    done.set()
    thread.join()
    assert during[-1] > during[0]


def test_progress_ends_at_the_end(lab):
    seen = []
    run = lab.run(progress=seen.append)
    assert isinstance(seen[-1], sanloom.Progress)
    assert seen[-1].run_s == seen[-1].duration_s == 0.03 and not seen[-1].logging_in
    assert seen[-1].frame_hops >= run.to_dict()["engine"]["frame_hops"]


def test_an_exception_of_progress_ends_the_run(lab):
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lab.set("run.duration", "1000s").run(progress=fail)


LONG = """
import json, os, sanloom, sys
def begun(progress):
    if progress.run_s > 0 and not told:
        told.append(1)
        print("begun", flush=True)
told = []
try:
    sanloom.Lab("examples/core-edge.toml").set("run.duration", "1000s").run(progress=begun)
except KeyboardInterrupt as interrupted:
    run = interrupted.result
    values = run.to_dict()
    print(json.dumps([run.interrupted, run.ok, values["lab"]["duration_s"], values["expectations"]]))
"""


def test_ctrl_c_raises_with_the_partial_result(lab):
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        os.kill(process.pid, signal.SIGINT)
        interrupted, ok, duration_s, expectations = json.loads(process.stdout.readline())
    assert process.returncode == 0
    assert interrupted and not ok and 0 < duration_s < 1000 and expectations == []


def test_a_run_writes_the_folder_of_the_command(lab, command, tmp_path):
    run = lab.run()
    run.write(tmp_path / "ours")
    sets = ["--set", "run.warmup=5ms", "--set", "run.duration=30ms"]
    command("sim", "examples/core-edge.toml", "--quiet", "--out", tmp_path / "theirs", *sets)
    ours, theirs = ({path.name for path in (tmp_path / side).iterdir()} for side in ("ours", "theirs"))
    assert ours == theirs
    for name in ("series.csv", "series.jsonl", "topology.svg", "lab.toml"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes(), name
    assert 'id="topology"' in run.report().html and run.report()._repr_html_().startswith("<iframe")
    assert run._repr_html_().startswith("<pre>")


def test_the_wheel_has_the_command():
    ours = subprocess.run([sys.executable, "-m", "sanloom", "--version"], capture_output=True, text=True)
    assert ours.returncode == 0 and ours.stdout.startswith("sanloom ")
    wrong = subprocess.run([sys.executable, "-m", "sanloom", "check", "nowhere.toml"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "nowhere.toml" in wrong.stderr
