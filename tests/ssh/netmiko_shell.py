"""Commands by netmiko, with the device type `brocade_fos`. Arguments: address, port, password."""

import sys

from netmiko import ConnectHandler
from netmiko.exceptions import NetmikoAuthenticationException

address, port, password = sys.argv[1:4]
device = {"device_type": "brocade_fos", "host": address, "port": int(port), "username": "admin"}

try:
    ConnectHandler(**device, password="wrong password")
    raise SystemExit("a wrong password is accepted")
except NetmikoAuthenticationException:
    pass

switch = ConnectHandler(**device, password=password)
assert switch.find_prompt() == "sw1:FID128:admin>", switch.find_prompt()
assert switch.base_prompt == "sw1:FID128:admin", switch.base_prompt
for command, expected in [
    ("switchshow", "switchName:\tsw1"),
    ("fabricshow", '>"sw1"'),
    ("uptime", "load averages:"),
    ("version", "Fabric OS:  v9.1.1"),
    ("porterrshow", "c3timeout"),
    ("portstatsshow -i 0-1", "fec_cor_detected"),
    ("cfgactvshow", " cfg:\tall-zones"),
    ("nsshow", "Local Name Server has"),
    ("nscamshow", "Switch entry for"),
    ("nsallshow", "Nx_Ports in the Fabric"),
    ("islshow", "sp: 16.000G"),
    ("cfgshow", "Defined configuration:"),
    ("zoneshow z12", " zone:\tz12"),
    ("portshow 0", "portWwn:"),
    ("trunkshow", "No trunking links"),
    ("fabricprincipal", "Principal Selection Mode:"),
    ("nothing", "rbash: nothing: command not found"),
]:
    output = switch.send_command(command)
    assert expected in output, f"{command}: {output!r}"
    assert "\x1b" not in output and "FID128" not in output, f"{command}: {output!r}"
assert switch.send_command("sensorshow") == ""

# A configuration: edits without output, then a question.
output = switch.send_config_set(['alicreate "a1", "50:25:a0:00:00:00:10:01"', "portname 1 -n disk"])
assert "error" not in output, output
question = switch.send_command("cfgsave", expect_string=r"\[no\]")
assert "save the Defined zoning configuration only?" in question, question
output = switch.send_command("y", expect_string=r">")
assert "Updating flash" in output, output
assert "disk" in switch.send_command("portname 1")
switch.disconnect()
print("netmiko is content")
