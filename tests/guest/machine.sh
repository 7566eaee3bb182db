# The virtual machine of the live tests, the same for its snapshot and for a start from it. To be sourced with $folder set.
# Emulated: stock kernels and nested virtualisation do not go together on every machine.
# The second processor is never plugged in, but could be: for a machine of one, QEMU 7.2 leaves the guest's memory barriers out
# (8.1 does not), although virtio needs them between the guest and the threads of QEMU: without, a queue may stand still for ever.
machine=(qemu-system-x86_64 -M pc -accel tcg,tb-size=128 -cpu Nehalem -m 256 -smp 1,maxcpus=2 -nodefaults -no-reboot -display none
    -kernel "$folder/kernel" -initrd "$folder/initrd"
    -object rng-random,id=random,filename=/dev/urandom -device virtio-rng-pci,rng=random)
command_line="console=ttyS0 quiet panic=1 net.ifnames=0 mitigations=off random.trust_cpu=on tsc=reliable"
