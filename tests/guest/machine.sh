# The virtual machine of the live tests, the same for its snapshot and for starts from it. Source
# this file with $folder set. The machine is emulated, because stock kernels and nested
# virtualisation do not work together on every machine. The second processor is never plugged in,
# but it could be. For a machine with one processor, QEMU 7.2 omits the memory barriers of the guest
# (8.1 does not), although virtio needs them between the guest and the threads of QEMU; without
# them, a queue may stop for ever.
machine=(qemu-system-x86_64 -M pc -accel tcg,tb-size=128 -cpu Nehalem -m 256 -smp 1,maxcpus=2 -nodefaults -no-reboot -display none
    -kernel "$folder/kernel" -initrd "$folder/initrd"
    -object rng-random,id=random,filename=/dev/urandom -device virtio-rng-pci,rng=random)
command_line="console=ttyS0 quiet panic=1 net.ifnames=0 mitigations=off random.trust_cpu=on tsc=reliable"
