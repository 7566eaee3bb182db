"""Labs and the command, for all tests of the package."""

import os
import pathlib
import subprocess

import pytest

import sanloom

ROOT = pathlib.Path(__file__).parents[2]
SANLOOM = os.environ.get("SANLOOM", str(ROOT / "target/release/sanloom"))


@pytest.fixture
def command(monkeypatch):
    """Runs the command in the root of the project; returns its output."""
    monkeypatch.chdir(ROOT)

    def run(*arguments):
        done = subprocess.run([SANLOOM, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run


@pytest.fixture
def lab(monkeypatch):
    """The fabric of the SANSim paper, for a short time."""
    monkeypatch.chdir(ROOT)
    return sanloom.Lab("examples/core-edge.toml").set("run.warmup", "5ms").set("run.duration", "30ms")


@pytest.fixture(scope="session")
def run():
    """Results of a lab with a fault, events, findings and several workloads."""
    return sanloom.Lab(ROOT / "examples/slow-drain.toml").run(remedies=False)
