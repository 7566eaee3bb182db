"""The dashboard of Grafana: each expression gives series in a Prometheus that reads running labs."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from conftest import ROOT, SANLOOM

DASHBOARD = ROOT / "docs/src/guides/grafana-dashboard.json"
PAGE = ROOT / "docs/src/guides/monitor.md"
LIMIT_S = 60

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None and os.environ.get("SANLOOM_REQUIRE_PEERS", "0") in ("", "0"),
    reason="prometheus is not installed",
)


def expressions():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url):
    """The answer, or None before the server is ready."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.load(response)
    except (urllib.error.URLError, ConnectionError):
        return None


def until(condition, what):
    end = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < end, what()
        time.sleep(0.1)
    return value


@pytest.fixture
def prometheus(tmp_path):
    """The address of a Prometheus that reads an FCoE lab and a virtualization switch."""
    metrics, processes = [], []
    for name in ("fcoe-lab", "iscsi-switch"):
        metrics.append(f"127.0.0.1:{port()}")
        text = (ROOT / f"examples/{name}.toml").read_text()
        live = f'folder = "{tmp_path / name}"\nmetrics = "{metrics[-1]}"\n'
        text = re.sub(r"\[live\]\n(\w+ = .*\n)+", f"[live]\n{live}", text)
        ports = {number: str(port()) for number in ("3260", "3261", "3262")}
        text = re.sub(r"(?<=127\.0\.0\.1:)(326[012])", lambda found: ports[found[0]], text)
        lab = tmp_path / f"{name}.toml"
        lab.write_text(text)
        log = open(tmp_path / f"{name}.log", "w")
        processes.append(subprocess.Popen([SANLOOM, "up", lab], stdout=log, stderr=log))
    config = tmp_path / "prometheus.yml"
    jobs = [{"job_name": "sanloom", "static_configs": [{"targets": metrics}]}]
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    address = f"127.0.0.1:{port()}"
    arguments = [f"--config.file={config}", f"--web.listen-address={address}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    log = open(tmp_path / "prometheus.log", "w")
    processes.append(subprocess.Popen(["prometheus", *arguments], stdout=log, stderr=log))
    yield f"http://{address}"
    for process in processes:
        process.terminate()
        process.wait()


def test_each_expression_of_the_dashboard_gives_series(prometheus):
    def healthy():
        targets = fetch(f"{prometheus}/api/v1/targets")
        return targets and [target["health"] for target in targets["data"]["activeTargets"]] == ["up", "up"]

    until(healthy, lambda: fetch(f"{prometheus}/api/v1/targets"))
    assert len(expressions()) > 20
    variables = {of["name"]: of for of in json.loads(DASHBOARD.read_text())["templating"]["list"]}
    metric = re.fullmatch(r"label_values\((\w+), instance\)", variables["instance"]["query"]["query"])[1]
    everything = variables["instance"]["allValue"]

    def ask(expression, instance):
        expression = expression.replace("$__rate_interval", "10s").replace("$instance", instance)
        return fetch(f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")

    # The choices of the variable are the labs, and an expression has the series of those chosen.
    instances = {one["metric"]["instance"] for one in ask(metric, everything)["data"]["result"]}
    assert len(instances) == 2
    for expression in expressions():

        def series():
            answer = ask(expression, everything)
            found = answer["data"]["result"] if answer else []
            # A label that the metric does not have would be empty, and join all series.
            labels = set(re.search(r"by \((.*?)\)", expression)[1].split(", "))
            return found and all(labels <= set(one["metric"]) for one in found)

        until(series, lambda: f"{expression} gives {ask(expression, everything)}")
        for instance in instances:
            found = ask(expression, re.escape(instance).replace("\\", "\\\\"))["data"]["result"]
            assert {one["metric"]["instance"] for one in found} <= {instance}, expression


def test_each_metric_of_the_dashboard_is_documented():
    page = PAGE.read_text()
    used = {name for expression in expressions() for name in re.findall(r"sanloom_(\w+)", expression)}
    assert {name for name in used if f"`{name}`" not in page} == set()
    assert pathlib.Path(DASHBOARD.name).name in page
