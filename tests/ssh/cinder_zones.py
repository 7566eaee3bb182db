"""The Brocade zone driver of OpenStack's volume service. Arguments: address, port, password, folder, two port names.

The client of the command line is the code of cinder, unchanged.
"""

import sys

from oslo_config import cfg

from cinder.zonemanager.drivers.brocade.brcd_fc_zone_client_cli import BrcdFCZoneClientCLI

address, port, password, folder, first, second = sys.argv[1:7]
cfg.CONF([], project="cinder")
# The service itself has this option; its other modules are not needed here.
cfg.CONF.register_opt(cfg.StrOpt("state_path", default=folder))
client = BrcdFCZoneClientCLI(address, "admin", password, port, None)

# The check of the firmware compares bytes with text, and fails for every switch; its command works.
lines, _ = client._execute_shell_cmd(["version"])
assert b"Fabric OS:  v9.1.1\r\n" in lines, lines
names = client.get_nameserver_info()
assert len(names) == 3 and first in names and second in names, names
active = client.get_active_zone_set()
assert active["active_zone_config"] == "all-zones" and len(active["zones"]["z12"]) == 2, active
client.add_zones({"openstack1": [first, second]}, True)
active = client.get_active_zone_set()
assert active["zones"]["openstack1"] == [first, second], active
# The driver takes the fabric for broken if a command prints something.
try:
    client.apply_zone_change(['zonecreate', '"openstack1",', f'"{first}"'])
    raise SystemExit("a duplicate name is accepted")
except Exception as error:
    assert "duplicate name" in str(error), error
assert not client._is_trans_abortable()
client.apply_zone_change(['zonecreate', '"openstack2",', f'"{first}"'])
assert client._is_trans_abortable()
client._cfg_trans_abort()
assert not client._is_trans_abortable()
client.delete_zones("openstack1", True)
active = client.get_active_zone_set()
assert list(active["zones"]) == ["z12"], active
# Saved, but not enabled.
client.add_zones({"openstack3": [first, second]}, False)
print("the zone driver is content")
