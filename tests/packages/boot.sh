#!/bin/sh
# Boots systemd in the root folder $1, in new namespaces, runs the script /probe there as a service,
# and ends. The output of the script is in /probe.log.
set -eu
root=$1
if [ "${2:-}" != inside ]; then
    exec timeout -k 5 120 unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child "$0" "$root" inside
fi
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for folder in run tmp dev; do
    mount -t tmpfs tmpfs "$root/$folder"
done
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm"
ip link set lo up
cat >"$root/etc/systemd/system/probe.service" <<UNIT
[Unit]
DefaultDependencies=no
Wants=basic.target
After=basic.target
[Service]
Type=oneshot
ExecStart=-/bin/sh -c '/probe >/probe.log 2>&1'
ExecStart=/usr/bin/systemctl exit 0
UNIT
ln -sf /dev/null "$root/etc/systemd/system/systemd-networkd-wait-online.service"
exec env -i container=lxc PATH=/usr/bin:/bin:/usr/sbin:/sbin \
    chroot "$root" /lib/systemd/systemd --unit=probe.service --show-status=0 --log-target=null
