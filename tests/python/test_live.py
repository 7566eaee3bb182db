"""Views and zones of a running lab, over its control socket and its page."""

import contextlib
import json
import os
import socket
import subprocess

import pytest

import sanloom
from conftest import SANLOOM

LAB = """
[lab]
name = "live"
[live]
folder = "{folder}"
[switch.sw1]
domain = 1
fcoe = {{ priority = 1 }}
[host."server{{1..2}}"]
[storage.ram]
luns = 2
lun_size = "1MiB"
[[link]]
from = "server{{1..2}}"
to = "sw1"
ethernet = {{ carrier = "dgram" }}
[[link]]
from = "ram"
to = "sw1"
"""


@contextlib.contextmanager
def up(tmp_path, *options, before=lambda file: None, host="127.0.0.1"):
    """Runs a lab; its file, and the address of its page."""
    file = tmp_path / "live.toml"
    file.write_text(LAB.format(folder=tmp_path / "state"))
    before(file)
    with socket.socket() as probe:
        probe.bind((host, 0))
        page = "%s:%d" % (host, probe.getsockname()[1])
    ready, write = os.pipe()
    arguments = [SANLOOM, "up", file, "--web", page, "--ready-fd", str(write), *options]
    log = open(tmp_path / "log", "w")
    with subprocess.Popen(arguments, pass_fds=[write], stdout=log, stderr=log) as process:
        os.close(write)
        with os.fdopen(ready) as line:
            assert line.readline() == "ready\n", (tmp_path / "log").read_text()
        try:
            yield file, f"http://{page}"
        finally:
            process.terminate()
    log.close()


@pytest.fixture
def running(tmp_path):
    """The file of a running lab, and the address of its page."""
    with up(tmp_path, "--web-open") as place:
        yield place


@pytest.fixture(params=["file", "lab", "socket", "page"])
def live(running, request):
    file, page = running
    targets = {"file": file, "lab": sanloom.Lab(file), "socket": file.parent / "state/control.sock", "page": page}
    return sanloom.connect(targets[request.param])


def test_views_are_those_of_show(live, running, command):
    view = live.show("ports", switch="sw1")
    assert view["view"] == "ports" and view["of"] == "live"
    table = view.table()
    assert [name for name in table["port"] if name.startswith("sw1:")] == table["port"]


    theirs = json.loads(command("show", running[0], "ports", "--live", "--switch", "sw1", "--json"))
    assert [port["port"] for port in theirs["ports"]] == table["port"]
    assert table.to_polars()["port"].to_list() == table["port"]
    assert "sanloom_uptime_seconds" in live.metrics()


EDITS = """
[[edit]]
action = "create"
zone = "z1"
members = ["server1", "ram"]
[[edit]]
action = "create"
config = "c1"
zones = ["z1"]
[[edit]]
action = "enable"
config = "c1"
"""


def test_zones_are_edited_previewed_committed_and_rolled_back(live, running):
    # The socket and the page have no lab, so the names are those of ports.
    ports = live.show("nodes").table().to_dict()
    names = {name.split(":")[0]: wwpn for name, wwpn in zip(ports["port"], ports["port_name"])}
    members = [names["server1"], names["ram"]]
    edits = [
        {"edit": "create_zone", "name": "z1", "zone": {"members": members}},
        {"edit": "create_config", "name": "c1", "zones": ["z1"]},
        {"edit": "enable", "config": "c1"},
    ]
    before = live.zones()["committed"]
    assert live.edit_zones(edits)["working"]["zones"]["z1"]["members"] == members
    assert live.zones()["committed"] == before
    preview = live.preview_zones()
    assert preview["before"]["effective"] is None and preview["after"]["effective"] == "c1"
    assert live.commit_zones()["committed"]["effective"]["config"] == "c1"
    assert live.rollback_zones()["committed"].get("effective") == before.get("effective")
    live.edit_zones(edits[:1])
    assert live.abort_zones().get("working") is None
    # The names of a lab file mean the same ports.
    of_lab = sanloom.connect(running[0])
    assert of_lab.edit_zones(EDITS)["working"]["zones"]["z1"]["members"] == members
    with pytest.raises(ValueError, match="server9"):
        of_lab.edit_zones(EDITS.replace("server1", "server9").replace("z1", "z2").replace("c1", "c2"))


def test_a_refused_request_has_its_reason(live):
    with pytest.raises(sanloom.RequestError, match="nowhere"):
        live.set_port("nowhere:0", enabled=False)
    with pytest.raises((ValueError, sanloom.RequestError)):
        live.show("no such table")


def test_nothing_answers_for_a_lab_that_is_not_running(tmp_path):
    file = tmp_path / "live.toml"
    file.write_text(LAB.format(folder=tmp_path / "state"))
    with pytest.raises(ConnectionError, match="sanloom up"):
        sanloom.connect(file)
    with pytest.raises(ConnectionError):
        sanloom.connect("http://127.0.0.1:1")


def test_a_page_with_users_needs_the_password_of_one_whose_role_permits_the_request(tmp_path):
    def users(file):
        for name, role in (("ada", "operate"), ("bob", "view")):
            add = [SANLOOM, "users", "add", str(file), name, "--role", role]
            subprocess.run(add, input=f"secret of {name}\n", text=True, check=True)

    with up(tmp_path, before=users) as (_, page):
        for user, password in ((None, None), ("ada", "secret of bob"), ("eve", "secret of ada")):
            with pytest.raises(ConnectionError):
                sanloom.connect(page, user=user, password=password)
        ada = sanloom.connect(page, user="ada", password="secret of ada")
        bob = sanloom.connect(page, user="bob", password="secret of bob")
        assert ada.show("ports").table().to_dict() == bob.show("ports").table().to_dict()
        with pytest.raises(sanloom.RequestError):
            bob.set_port("sw1:0", enabled=False)
        ada.set_port("sw1:0", enabled=False)
        assert ada.show("ports").table().to_dict()["dark"][0] == "disabled"


def test_a_page_at_other_addresses_has_a_certificate_that_cafile_trusts(tmp_path):
    def users(file):
        add = [SANLOOM, "users", "add", str(file), "ada", "--role", "view"]
        subprocess.run(add, input="secret of ada\n", text=True, check=True)

    with up(tmp_path, before=users, host="0.0.0.0") as (file, page):
        address = page.replace("http://0.0.0.0", "https://localhost")
        with pytest.raises(ConnectionError, match="surface.pem"):
            sanloom.connect(address, user="ada", password="secret of ada")
        certificate = file.parent / "state/surface.pem"
        live = sanloom.connect(address, user="ada", password="secret of ada", cafile=certificate)
        assert live.show("ports").table().to_dict()["port"] == ["sw1:0", "sw1:1", "sw1:2"]
        with pytest.raises(TypeError):
            sanloom.connect(file, cafile=certificate)


def test_a_simulation_is_shown_and_changed_like_a_running_lab(tmp_path):
    with up(tmp_path, "--simulated", "--web-open") as (file, page):
        for target in (file, page):
            live = sanloom.connect(target)
            table = live.show("ports").table().to_dict()
            assert table["port"] == ["sw1:0", "sw1:1", "sw1:2"]
            assert live.show("luns").table().to_dict()["size_bytes"] == [1 << 20] * 2
            live.set_port("sw1:0", enabled=False)
            assert live.show("ports").table().to_dict()["dark"][0] == "disabled"
            live.set_port("sw1:0", enabled=True)
            edits = [{"edit": "create_alias", "name": "a1", "members": ["1,1"]}]
            live.edit_zones(edits)
            assert "a1" in live.commit_zones()["committed"]["aliases"]
            live.edit_zones([{"edit": "delete", "kind": "alias", "name": "a1"}])
            assert "a1" not in live.commit_zones()["committed"].get("aliases", {})
