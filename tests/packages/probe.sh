#!/bin/sh
# Runs a lab as a service, under systemd: see boot.sh.
set -eu
fail() {
    echo "probe: $1"
    systemctl status --no-pager sanloom@san
    exit 1
}
unit=sanloom@san
cat >/etc/sanloom/san.toml <<LAB
[switch.sw1]
[host.server]
[storage.disk]
medium = "file"
lun_size = "1MiB"
[[link]]
from = "server"
to = "sw1"
ethernet = { carrier = "dgram" }
[[link]]
from = "disk"
to = "sw1"
LAB
# Containers may neither make devices nor user namespaces; all other limits of the unit are in force.
mkdir -p "/run/systemd/system/$unit.service.d"
printf '[Service]\nPrivateDevices=no\nPrivateUsers=no\n' >"/run/systemd/system/$unit.service.d/container.conf"
systemctl daemon-reload
systemctl start "$unit" || fail "the service does not start"
# systemd waits for the notice of the lab, so it answers at once.
sanloom show /etc/sanloom/san.toml ports --live | grep -q sw1:0 || fail "the service does not answer"
sanloom ps | grep -q /etc/sanloom/san.toml || { sanloom ps; fail "ps does not list the service"; }
[ "$(stat -c '%U %a' /run/sanloom/san /var/lib/sanloom/san | uniq)" = 'sanloom 750' ] || fail "the folders are open"
[ -S /run/sanloom/san/control.sock ] && [ -s /var/lib/sanloom/san/disk-lun0.img ] || fail "files are elsewhere"
process=$(systemctl show --property MainPID --value "$unit")
grep -q 'CapBnd:[[:space:]]*0*$' "/proc/$process/status" || fail "the service has capabilities"
grep -q 'Seccomp:[[:space:]]*2' "/proc/$process/status" || fail "the service may make every system call"
sed -i 's/\[storage.disk\]/&\nluns = 2/' /etc/sanloom/san.toml
systemctl reload "$unit" || fail "the service does not apply the file"
[ -s /var/lib/sanloom/san/disk-lun1.img ] || fail "the second disk is missing"
systemctl stop "$unit"
[ "$(systemctl show --property Result --value "$unit")" = success ] || fail "the service ends with an error"
[ ! -e /run/sanloom/san ] || fail "the sockets are left"
# A wrong lab is not started again and again.
echo '[switch' >/etc/sanloom/san.toml
systemctl start "$unit" && fail "a wrong lab starts"
systemctl is-failed --quiet "$unit" || fail "a wrong lab is started again"
echo "the service works"
