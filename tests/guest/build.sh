#!/usr/bin/env bash
# Builds the guest of the live tests from Debian packages: kernel, initial file system, and a
# snapshot of the machine just before it runs its script, so that a test starts in a second.
#
#   build.sh FOLDER      does nothing if FOLDER is complete and newer than this folder
#
# Several processes may build the same FOLDER at once: the first one builds, the others wait for it.
# Needs apt-get (with lists), dpkg-deb, cpio, qemu-system-x86_64. Root is not needed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

packages="busybox-static libc6 fcoe-utils libpciaccess0 zlib1g sg3-utils libsgutils2-1.46-2
          open-iscsi libkmod2 libopeniscsiusr libssl3 liblzma5 libzstd1 libisns0 libsystemd0 libcap2 libgcrypt20
          libgpg-error0 liblz4-1 libmount1 libblkid1
          dmsetup libdevmapper1.02.1 libselinux1 libpcre2-8-0 libudev1
          multipath-tools libaio1 libedit2 libbsd0 libmd0 libtinfo6 libjson-c5 liburcu8 libgcc-s1 udev libacl1
          mdadm
          iproute2 libmnl0 libelf1 libbpf1"
modules="virtio_pci virtio_net virtio_rng qemu_fw_cfg 8021q fcoe sd_mod sg tcm_fc target_core_mod crc32c_generic
         crc_t10dif crct10dif_generic crct10dif_common iscsi_tcp dm-multipath dm-round-robin
         scsi_dh_alua iscsi_target_mod loop raid456
         rdma_rxe crc32_generic ib_srp ib_srpt"

stamp=$(cat "$here"/*.sh "$here"/root/init "$here"/root/bin/* | sha256sum | cut -d' ' -f1)
complete() { [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ]; }
complete && exit 0
exec 9>"$folder/lock"
if ! flock -w 900 9; then
    echo "build.sh: somebody has been building in $folder for 15 minutes; find out who has $folder/lock open" >&2
    exit 1
fi
complete && exit 0

kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
if [ -z "$kernel" ]; then
    echo "build.sh: apt knows no kernel; run apt-get update first" >&2
    exit 1
fi
version=${kernel#linux-image-}

# Files are moved into the folder when they are complete, because a build may be interrupted, and
# guests may use the previous files.
rm -rf "$folder/new"
mkdir -p "$folder/packages" "$folder/new"
cd "$folder/new"
for package in $packages "$kernel"; do
    if ! compgen -G "$folder/packages/${package}_*.deb" >/dev/null; then
        apt-get download -qq "$package"
        mv "${package}"_*.deb "$folder/packages"
    fi
done

# File system tree of the guest: everything in /usr, as in Debian.
mkdir -p tree image
for package in $packages; do
    dpkg-deb -x "$folder/packages/${package}"_*.deb tree
done
dpkg-deb -x "$folder/packages/${kernel}"_*.deb image
cp "image/boot/vmlinuz-$version" kernel
rm -rf tree/usr/share tree/etc tree/var tree/lib/systemd tree/lib/modprobe.d
for directory in bin sbin lib lib64; do
    mkdir -p "tree/usr/$directory"
    if [ -d "tree/$directory" ] && [ ! -L "tree/$directory" ]; then
        cp -a "tree/$directory/." "tree/usr/$directory/"
        rm -rf "tree/$directory"
    fi
    ln -sfn "usr/$directory" "tree/$directory"
done
rm -rf tree/usr/lib/x86_64-linux-gnu/gconv tree/usr/lib/udev/hwdb.d
# Debian has this program under the same name in a folder of systemd.
ln -s udevadm tree/usr/bin/systemd-udevd
mkdir -p tree/{proc,sys,dev,tmp,run,root,etc/fcoe,etc/target,var/lock}

# Modules with their dependencies.
from=image/lib/modules/$version
to=tree/usr/lib/modules/$version
mkdir -p "$to"
busybox=tree/usr/bin/busybox
[ -s "$from/modules.dep" ] || $busybox depmod -b image "$version"
for module in $modules; do
    line=$(grep -E "/(${module}|${module//_/-})\.ko(\.xz)?:" "$from/modules.dep" | head -n 1 || true)
    for file in ${line/:/ }; do
        mkdir -p "$to/$(dirname "$file")"
        cp "$from/$file" "$to/$file"
        case $file in *.xz) xz -d -f "$to/$file" ;; esac
    done
done
cp "$from/modules.builtin" "$from/modules.order" "$to/"
$busybox depmod -b tree/usr "$version"
for applet in $($busybox --list); do
    [ -e "tree/usr/bin/$applet" ] || [ -e "tree/usr/sbin/$applet" ] || ln -s busybox "tree/usr/bin/$applet"
done
cp "$here/root/init" tree/init
cp "$here"/root/bin/* tree/usr/bin/
(cd tree && find . | LC_ALL=C sort | cpio -o -H newc --quiet -R 0:0 | gzip -1) >initrd
rm -rf tree image

# The snapshot: when the guest reports that it waits for a script, the monitor saves the state of
# the machine.
target=$folder
folder=$target/new
. "$here/machine.sh"
: >console
monitor() {
    for _ in $(seq 1800); do
        if grep -q "guest: waiting" console; then
            sleep 0.3
            echo "migrate_set_parameter max-bandwidth 4294967296"
            echo "migrate \"exec:cat > state\""
            echo "quit"
            return
        fi
        sleep 0.1
    done
    echo "quit"
}
monitor | timeout 240 "${machine[@]}" -append "$command_line guest.wait" \
    -netdev hubport,id=n0,hubid=0 -device virtio-net-pci,netdev=n0,mac=52:54:00:00:00:00 \
    -serial file:console -monitor stdio >monitor.log 2>&1 || true
if [ ! -s state ]; then
    echo "build.sh: the guest did not start:" >&2
    tail -n 20 console monitor.log >&2
    exit 1
fi
rm -f "$target/stamp"
mv kernel initrd state console monitor.log "$target"
rmdir "$target/new"
echo "$stamp" >"$target/stamp"
echo "guest: Linux $version, $(du -sh "$target" | cut -f1) in $target"
