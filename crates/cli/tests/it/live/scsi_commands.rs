//! Results of sg3-utils, in the guest, with our disks.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use sanloom_test_support::tshark;

const LAB: &str = r#"
[switch.sw1]

[storage.ram]
lun_size = "256MiB"

[[link]]
from = "ram"
to = "sw1"
"#;

/// Each command succeeds and has the expected effect on the data.
#[needs("guest", "tshark")]
#[test]
fn the_disks_execute_the_commands_of_sg3_utils() {
    let mut bed = Bed::start("sg3", LAB, &["server1-sw1"]);
    let script = r#"
disk=/dev/sda
try() { "$@" >/tmp/out 2>&1; code=$?; [ $code = 0 ] || { echo "failed ($code): $*"; cat /tmp/out; exit 1; }; }
fcoe-initiator 1 || exit 1

try sg_turs $disk
try sg_requests $disk
for page in sv sn di ei bl bdc lbpv; do try sg_vpd -p $page $disk; cat /tmp/out; done
try sg_inq $disk; cat /tmp/out
try sg_readcap --long $disk; cat /tmp/out
try sg_luns $disk
try sg_modes $disk
try sg_opcodes $disk; echo "opcodes $(grep -c . /tmp/out)"
try sg_rtpg $disk; cat /tmp/out
try sg_sync $disk
try sg_verify --lba=0 --count=64 $disk
try sg_start --start $disk

key=0xabc123
try sg_persist --out --register --param-sark=$key $disk
try sg_persist --out --reserve --param-rk=$key --prout-type=1 $disk
try sg_persist --in --read-keys $disk; cat /tmp/out
try sg_persist --in --read-reservation $disk; cat /tmp/out
try sg_persist --in --report-capabilities $disk
try sg_persist --out --release --param-rk=$key --prout-type=1 $disk
for type in 3 5 6 7 8; do
    try sg_persist --out --reserve --param-rk=$key --prout-type=$type $disk
    try sg_persist --in --read-reservation $disk; echo "type $type: $(sed -n 's/.*LU_SCOPE,  type: //p' /tmp/out)"
    try sg_persist --out --release --param-rk=$key --prout-type=$type $disk
done
try sg_persist --out --register --param-rk=$key --param-sark=$key --param-aptpl $disk
try sg_persist --in --read-full-status $disk
try sg_persist --out --clear --param-rk=$key $disk

dd if=/dev/urandom of=/tmp/data bs=1M count=2 2>/dev/null
try dd if=/tmp/data of=$disk bs=1M oflag=direct
try sg_unmap --lba=0 --num=2048 $disk
try sg_get_lba_status --lba=0 $disk; cat /tmp/out
try dd if=$disk of=/tmp/back bs=1M count=2 iflag=direct
head -c 1048576 /dev/zero >/tmp/zeros
tail -c 1048576 /tmp/data >>/tmp/zeros
# One command of 1 MiB.
try sg_dd if=$disk of=/tmp/whole bs=512 count=2048 skip=0 bpt=2048
cmp -n 1048576 /tmp/zeros /tmp/whole || exit 2
try sg_reset --device $disk
try sg_turs --number=3 $disk
cmp /tmp/zeros /tmp/back || { echo "unmapped blocks are no zeros, or others are"; exit 3; }

head -c 512 /dev/urandom >/tmp/block
try sg_write_same --16 --lba=100 --num=50 --in=/tmp/block --xferlen=512 $disk
try sg_write_same --10 --lba=200 --num=1 --in=/tmp/block --xferlen=512 $disk
for lba in 100 149 200; do
    try dd if=$disk of=/tmp/back bs=512 skip=$lba count=1 iflag=direct
    cmp /tmp/block /tmp/back || exit 4
done
head -c 512 /dev/urandom >/tmp/new
cat /tmp/block /tmp/new >/tmp/both
try sg_compare_and_write --lba=100 --num=1 --in=/tmp/both --xferlen=1024 $disk
try dd if=$disk of=/tmp/back bs=512 skip=100 count=1 iflag=direct
cmp /tmp/new /tmp/back || exit 5
sg_compare_and_write --lba=100 --num=1 --in=/tmp/both --xferlen=1024 $disk >/dev/null 2>&1
echo "second compare and write ends with $?"
"#;
    let output = bed.guest("server1", 1, script).end();
    let expected = [
        "SANLOOM",
        "Maximum unmap LBA count",
        "Unmap command supported (LBPU): 1",
        "Last LBA=524287",
        "lbpme=1",
        "0xabc123",
        "scope: LU_SCOPE,  type: Write Exclusive",
        "target port group asymmetric access state : 0x00",
        "type 3: Exclusive Access",
        "type 5: Write Exclusive, registrants only",
        "type 6: Exclusive Access, registrants only",
        "type 7: Write Exclusive, all registrants",
        "type 8: Exclusive Access, all registrants",
        "opcodes 5",
        // "Miscompare", sense key of the command.
        "second compare and write ends with 14",
    ];
    for text in expected {
        assert!(output.contains(text), "{text} is missing in:\n{output}");
    }
    bed.stop();
    let capture = bed.capture("server1-sw1");
    check_capture(&capture, 2_000);
    for filter in ["fcp.mgmt.flags.lu_reset == 1", "fcp.dl == 1048576"] {
        assert!(!tshark::frames(&capture, filter).is_empty(), "no {filter} on the wire");
    }
}
