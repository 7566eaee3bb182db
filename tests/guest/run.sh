#!/usr/bin/env bash
# Runs a script in the guest that build.sh has built.
#
#   run.sh FOLDER SCRIPT MAC NETDEV [SECONDS [MONITOR [INPUT]]]
#
# SCRIPT: a file, for the guest's shell. MAC: of eth0. NETDEV: as for `-netdev` of QEMU, without
# `id=`.
# MONITOR: path of a socket for commands of QEMU's monitor (`set_link n0 off` pulls the cable).
# INPUT: path of a named pipe that is the input of the guest's console.
# The console goes to standard output. Exit code: that of the script; 124 after SECONDS; 120 if the
# guest did not report one.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd)
. "$here/machine.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$2" "$work/script"
echo "$3" >"$work/mac"
more=()
[ $# -lt 6 ] || more=(-monitor "unix:$6,server=on,wait=off")

# QEMU is in the process group of this script, so ending the group ends both. QEMU 7.2 may end with
# a segmentation fault when a datagram port is closed, so its exit code is ignored.
set +e
timeout --foreground -k 5 "${5:-120}" "${machine[@]}" -append "$command_line guest.wait" -incoming "exec:cat $folder/state" \
    -global migration.announce-rounds=0 -netdev "${4%%,*},id=n0,${4#*,}" \
    -device virtio-net-pci,netdev=n0,mac=52:54:00:00:00:00 -serial stdio "${more[@]}" \
    -fw_cfg "name=opt/guest/script,file=$work/script" -fw_cfg "name=opt/guest/mac,file=$work/mac" \
    <>"${7:-/dev/null}" 2>&1 | sed -u 's|\r||g' | tee "$work/console"
code=${PIPESTATUS[0]}
[ "$code" != 124 ] && [ "$code" != 137 ] || exit 124
said=$(sed -n 's/^guest: script ended with \([0-9]*\)$/\1/p' "$work/console" | tail -n 1)
exit "${said:-120}"
