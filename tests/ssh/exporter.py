"""The commands of an exporter for Prometheus, and its rules of reading. Arguments: address, port, password.

The exporter is a program in Go; this is its conversation, not its code: password only, algorithms of 2019, one
session for each command on one connection.
"""

import re
import sys

import paramiko

address, port, password = sys.argv[1:4]
transport = paramiko.Transport((address, int(port)))
options = transport.get_security_options()
options.kex = ["curve25519-sha256@libssh.org"]
options.ciphers = ["aes128-ctr"]
options.digests = ["hmac-sha2-256"]
transport.connect(username="admin", password=password)


def run(command):
    session = transport.open_session()
    session.exec_command(command)
    output = session.makefile("rb").read().decode()
    assert session.recv_exit_status() == 0, f"{command}: {output}"
    return output


principals = [line for line in run("fabricshow").split("\n") if ">" in line]
assert len(principals) == 1, principals
assert re.search(r'>"(.*)"', principals[0]).group(1) == "sw1"
words = run("uptime").rstrip("\n").split(" ")
assert 10 <= len(words) <= 13 and "" not in words, words
fabric_os = [line for line in run("version").split("\n") if line.startswith("Fabric OS:  ")]
assert fabric_os == ["Fabric OS:  v9.1.1"], fabric_os
for line in filter(None, run("sensorshow").split("\n")):
    assert re.match(r"sensor +\d+: \(.*\) is ", line), line
lines = run("porterrshow").split("\n")
assert lines[-1] == "" and lines[-2] != "" and len(lines) >= 5, lines
ports = [re.findall(r"\d+", line) for line in lines[2:-1]]
assert all(len(port) == 20 for port in ports), ports
blocks = re.split(r"\n\n", run(f"portstatsshow -i {ports[0][0]}-{ports[-1][0]}"))
assert len(blocks) == len(ports), blocks
for port, block in zip(ports, blocks):
    assert re.search(r"port:\s+(\d+)", block).group(1) == port[0], block
    assert re.search(r"fec_cor_detected\s+\d+", block), block
transport.close()
print("the exporter is content")
