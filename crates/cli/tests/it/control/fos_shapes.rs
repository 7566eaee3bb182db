//! Shape of the output of every command of a switch.

use super::fos::Managed;
use crate::sanloom::SANLOOM;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// Prints a known line between two commands.
const MARK: &str = "mark";
const MARKED: &str = "rbash: mark: command not found\n";

/// Lines of a session, and the shape of their output. In a shape, `#` is a number, `%` a
/// world-wide name, `~` one space or more and `*` any text; a line that begins with `+ ` stands
/// for one line or more.
const SHAPES: &[(&str, &[&str])] = &[
    (
        "switchshow",
        &[
            "switchName:\tsw2",
            "switchType:\t170.0",
            "switchState:\tOnline   ",
            "switchMode:\tNative",
            "switchRole:\tSubordinate",
            "switchDomain:\t2",
            "switchId:\tfffc02",
            "switchWwn:\t%",
            "zoning:\t\tON (all-zones)",
            "switchBeacon:\tOFF",
            "FC Router:\tOFF",
            "HIF Mode:\tOFF",
            "Allow XISL Use:\tOFF",
            "LS Attributes:\t[FID: 128, Base Switch: No, Default Switch: Yes, Address Mode 0]",
            "",
            "Index Port Address Media Speed       State   Proto",
            "==================================================",
            "   0   0   020000   id    N# \t  Online      FC  F-Port  % ",
            "   1   1   020100   id    N# \t  Online      FC  E-Port  % \"sw1\"",
        ],
    ),
    (
        "fabricshow",
        &[
            "Switch ID   Worldwide Name           Enet IP Addr    FC IP Addr      Name",
            "-------------------------------------------------------------------------",
            "  1: fffc01 % *.*.*.* 0.0.0.0        >\"sw1\"",
            "  2: fffc02 % *.*.*.* 0.0.0.0         \"sw2\"",
            "",
            "The Fabric has 2 switches",
        ],
    ),
    ("switchshow | grep -i 'e-port'", &["   1   1   020100   id    N# \t  Online      FC  E-Port  % \"sw1\""]),
    ("nsallshow | more | wc -l", &["3"]),
    ("islshow", &["  1:  1->  2 %   1 sw1                    sp: 16.000G bw: 16.000G "]),
    ("trunkshow", &["No trunking links"]),
    (
        "nsshow",
        &[
            "{",
            " Type Pid    COS     PortName                NodeName                 TTL(sec)",
            " N    020000;      3;%;%; na",
            "    FC4s: *",
            "    PortSymb: [5] \"disk3\"",
            "    NodeSymb: [5] \"disk3\"",
            "    Fabric Port Name: % ",
            "    Permanent Port Name: %",
            "    Device type: Physical Target",
            "    Port Index: 0",
            "    Share Area: No",
            "    Redirect: No ",
            "    Partial: No",
            "    LSAN: No",
            "The Local Name Server has 1 entry }",
        ],
    ),
    (
        "nscamshow",
        &[
            "nscam show for remote switches:",
            "Switch entry for 1",
            " state  rev       owner  cap_available",
            " known  v911      0xfffc01 1",
            "   Device list: count 2 (sw1)",
            " Type Pid    COS     PortName                NodeName                 TTL(sec)",
            " N    010000;      3;%;%; na",
            "+     *: *",
            " N    010100;      3;%;%; na",
            "+     *: *",
        ],
    ),
    ("nsallshow", &["{", "010000 010100 020000 ", "3 Nx_Ports in the Fabric }"]),
    ("version", &["Kernel:     sanloom *", "Fabric OS:  v9.1.1", "Made on:    *", "Flash:\t    *", "BootProm:   *"]),
    ("uptime", &["#:#:# up # min, # user, load averages: #.#, #.#, #.#"]),
    ("date", &["* #:#:# UTC #"]),
    ("sensorshow", &[]),
    ("chassisname", &["sw2"]),
    ("switchname", &["sw2"]),
    ("switchname core", &["Committing configuration...", "Done."]),
    ("switchname", &["core"]),
    ("timeout", &["Current IDLE Timeout is 10 minutes"]),
    (
        "timeout 30",
        &["IDLE Timeout Changed to 30 minutes", "The modified IDLE Timeout will be in effect after NEXT login"],
    ),
    ("timeout", &["Current IDLE Timeout is 30 minutes"]),
    ("timeout never", &["Usage: timeout [0-99999 minutes]"]),
    ("iodshow", &["IOD is not set"]),
    ("iodset", &["IOD is set"]),
    ("iodshow", &["IOD is set"]),
    ("iodreset", &["IOD is not set"]),
    ("creditrecovmode --show", &["Internal port credit recovery is Disabled"]),
    ("creditrecovmode --cfg onLrThresh", &[]),
    ("creditrecovmode --show", &["Internal port credit recovery is Enabled with LrThresh"]),
    ("creditrecovmode --cfg onLrOnly; creditrecovmode", &["Internal port credit recovery is Enabled with LrOnly"]),
    ("fabricprincipal", &["Principal Selection Mode: Disable", "", "Principal Switch Selection Priority: 0x0"]),
    ("fabricprincipal --enable -p 0x10 -f", &["Principal Selection Mode enabled"]),
    ("fabricprincipal --show", &["Principal Selection Mode: Enable", "", "Principal Switch Selection Priority: 0x10"]),
    ("fabricprincipal --disable", &["Principal Selection Mode disabled"]),
    (
        "porterrshow",
        &[
            "          frames      enc    crc    crc    too    too    bad    enc   disc   link   loss   loss   frjt   \
             fbsy    c3timeout    pcs    uncor",
            "       tx     rx      in    err    g_eof  shrt   long   eof     out   c3    fail    sync   sig                   \
             tx    rx     err    err",
            "+ ~#:~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#",
        ],
    ),
    (
        "portstatsshow -i 0-1",
        &[
            "port:  0",
            "=========",
            "+ *_* # *",
            "fec_cor_detected * Count of blocks that were corrected by FEC",
            "",
            "port:  1",
            "=========",
            "+ *_* # *",
            "fec_cor_detected * Count of blocks that were corrected by FEC",
        ],
    ),
    ("portstatsclear 0", &[]),
    (
        "portshow 0",
        &[
            "portIndex:   0",
            "portName: port0",
            "portHealth: HEALTHY",
            "",
            "Authentication: None",
            "portDisableReason: None",
            "portCFlags: 0x1",
            "portType:  18.0",
            "POD Port: Port is licensed",
            "portState: 1\tOnline   ",
            "portPhys:  Online",
            "portScn:   32   F_Port    ",
            "portId:    020000",
            "portIfId:    4302*",
            "portWwn:   %",
            "portWwn of device(s) connected:",
            "\t%",
            "Distance:  normal",
            "portSpeed: N#Gbps",
            "",
            "Frames sent: #",
            "Frames received: #",
            "Discards: #",
            "Link_failure: #",
            "Loss_of_sync: #",
            "Loss_of_sig:  #",
            "Invalid_crc:  #",
            "Lr_in:        #",
            "Lr_out:       #",
        ],
    ),
    (
        "PortLoginShow 0",
        &[
            "Type  PID     World Wide Name        credit df_sz cos",
            "=====================================================",
            "  fe  020000 %~#~#~#",
        ],
    ),
    ("portloginshow", &["Usage: portloginshow [-i] PORT[-PORT] ..."]),
    (
        "nodefind 020000",
        &[
            "Local:",
            " Type Pid    COS     PortName                NodeName                 TTL(sec)",
            " N    020000;      3;%;%; na",
            "+     *: *",
            "    Aliases: ",
        ],
    ),
    ("nodefind 070000", &["No device found."]),
    ("sfpshow", &["Port  0: id (sw) Vendor: none Serial No: none Speed: *", "Port  1: id (sw) *"]),
    ("sfpshow 0", &["Port  0:", "+ *:~*"]),
    (
        "switchshow -portname",
        &[
            "Index Port PortWWN                  Name",
            "==================================================",
            "   0   0   %  port0",
            "   1   1   %  port1",
        ],
    ),
    ("switchshow -portcount", &["ports = 2"]),
    ("switchshow -qsfp", &["Usage: switchshow [-portname | -portcount]"]),
    ("porterrshow 1", &["+ *frames*", "+ *tx*", "  1:~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#~#"]),
    ("portcfgshow", &["Ports of Slot 0          0   1", "----------------------+---+---", "+ *~*~*"]),
    ("portcfgpersistentdisable 0", &[]),
    ("portcfgshow | grep Persistent", &["Persistent Disable      ON  .."]),
    ("portcfgpersistentenable 0", &[]),
    ("portcfgshow 0", &["Area Number:              0", "+ *:~*"]),
    (
        "cfgsize",
        &["Zone DB max size - # bytes", "Available Zone DB size - # bytes", "committed - #", "transaction - 0"],
    ),
    (
        "chassisShow",
        &["", "Chassis Family: sanloom", "Chassis Backplane Revision: 0", "", "CHASSIS/WWN  Unit: 1", "+ *: *"],
    ),
    ("chassisshow --help", &["Usage: chassisshow"]),
    (
        "configShow -all",
        &[
            "[Configuration upload Information]",
            "+ * = *",
            "",
            "[Chassis Configuration Begin]",
            "+ chassis.*:*",
            "[Chassis Configuration End]",
            "",
            "[Switch Configuration Begin : 0]",
            "SwitchName = core",
            "Fabric ID = 128",
            "",
            "[Configuration]",
            "+ *.*:*",
            "",
            "[Zoning]",
            "cfg.all-zones:z12",
            "zone.z12:%;%",
            "defaultZoneAccess:0",
            "enable:all-zones",
            "[Switch Configuration End : 0]",
        ],
    ),
    ("configshow -pattern switch.name", &["switch.name:core"]),
    (
        "firmwareshow",
        &[
            "Appl     Primary/Secondary Versions",
            "------------------------------------------",
            "FOS      v9.1.1",
            "         v9.1.1",
        ],
    ),
    ("licenseshow", &["No licenses installed."]),
    ("slotshow", &["Not supported on this platform"]),
    ("setcontext 20; switchshow", &["VF feature is not enabled"]),
    ("fosexec --fid all -cmd islshow", &["VF feature is not enabled"]),
    ("lscfg --show", &["VF feature is not enabled"]),
    ("zoneshow --peerzone all", &["There are no peer zones"]),
    ("zone --show", &[" zone:\tz12", "\t\t%; %"]),
    ("zone --create \"q1\" -principal \"50:25:a0:00:00:00:10:01\" -members \"2,9\"", &[]),
    ("zoneshow --peerzone user", &[" zone:\tq1", "\t\t00:02:00:00:00:03:01:01; %; 2,9"]),
    ("zone --delete q1", &[]),
    ("cfgtransabort", &[]),
    ("portname 0", &["port  0: port0"]),
    ("portname 0 -n array", &[]),
    ("portname", &["port  0: array", "port  1: port1"]),
    ("portdisable 0", &[]),
    ("portenable 0/0", &[]),
    ("portshow 77", &["Port 77 does not exist."]),
    ("cfgactvshow", &["Effective configuration:", " cfg:\tall-zones\t", " zone:\tz12\t%", " \t\t%"]),
    ("alishow", &[]),
    ("alicreate \"a1\", \"50:25:a0:00:00:00:10:01\"", &[]),
    ("aliadd \"a1\", \"50:25:a0:00:00:00:20:01;2,5\"", &[]),
    ("aliremove \"a1\", \"2,5\"", &[]),
    ("alishow a1", &[" alias:\ta1", "\t\t%; %"]),
    ("alicreate a1, 1,1", &["error: \"a1\" duplicate name"]),
    ("alicreate a2, 50:25:a0:00:00:00:30:01", &[]),
    ("zonecreate z1, a1;a2", &[]),
    ("zoneadd \"z1\", \"2,7; 2,8\"", &[]),
    ("zoneremove \"z1\", \"2,8\"", &[]),
    ("zoneshow z1", &[" zone:\tz1", "\t\ta1; a2; 2,7"]),
    ("zoneobjectrename z1, z2", &[]),
    ("zoneobjectexpunge a2", &[]),
    ("zoneshow z*", &[" zone:\tz12", "\t\t%; %", " zone:\tz2", "\t\ta1; 2,7"]),
    ("zonecreate --peerzone \"p1\" -principal \"a1\" -members \"2,9\"", &[]),
    ("zoneobjectexpunge a1", &["zone p1 would lose its last principal*"]),
    ("zonedelete p1", &[]),
    ("zonecreate \"z3\", \"2,9\"", &[]),
    ("cfgcreate c1, z2;z3", &[]),
    ("cfgadd c1, z12", &[]),
    ("cfgremove c1, z3", &[]),
    ("zonedelete z3", &[]),
    ("cfgtransshow", &["Current transaction token is 0x#", "It is abortable"]),
    (
        "cfgsave\ny",
        &[
            "You are about to save the zoning configuration.",
            "The change applies to all switches of the fabric.",
            "Do you want to save the Defined zoning configuration only? (yes, y, no, n): [no] Updating flash ...",
        ],
    ),
    ("cfgenable c1\nno", &["+ *", "* (yes, y, no, n): [no] Operation cancelled."]),
    ("cfgenable c1\ny", &["+ *", "* (yes, y, no, n): [no] zone config \"c1\" is in effect", "Updating flash ..."]),
    (
        "cfgshow",
        &[
            "Defined configuration:",
            " cfg:\tall-zones\tz12",
            " cfg:\tc1\tz2; z12",
            " zone:\tz12",
            "\t\t%; %",
            " zone:\tz2",
            "\t\ta1; 2,7",
            " alias:\ta1",
            "\t\t%; %",
            "",
            "Effective configuration:",
            " cfg:\tc1",
            "+ *\t*",
            "",
        ],
    ),
    (
        "defzone --show",
        &["Default Zone Access Mode", "        committed - No Access", "        transaction - No Transaction"],
    ),
    ("defzone --allaccess\nno", &["+ *", "* (yes, y, no, n): [no] Operation cancelled."]),
    ("defzone --allaccess\ny", &["+ *", "* (yes, y, no, n): [no] "]),
    ("defzone", &["Default Zone Access Mode", "        committed - No Access", "        transaction - All Access"]),
    ("cfgtransabort", &[]),
    ("cfgtransshow", &["There is no outstanding zoning transactions"]),
    ("cfgdisable\ny", &["+ *", "* (yes, y, no, n): [no] Updating flash ..."]),
    ("cfgdelete c1", &[]),
    ("alidelete a1", &[]),
    ("cfgclear\nno", &["+ *", "* (yes, y, no, n): [no] Operation cancelled."]),
    ("cfgclear\nyes", &["+ *", "* (yes, y, no, n): [no] "]),
    ("cfgtransabort", &[]),
    ("errdump --severity critical", &["Version: v9.1.1", ""]),
    ("errshow --count 0", &["Version: v9.1.1", ""]),
    ("switchdisable", &[]),
    ("switchenable", &[]),
    ("help", &["+ * *"]),
    ("exit", &[]),
];

fn line_fits(shape: &str, line: &str) -> bool {
    let taken = |is: fn(char) -> bool| line.find(|c| !is(c)).unwrap_or(line.len());
    let mut shape = shape.chars();
    let Some(first) = shape.next() else { return line.is_empty() };
    let rest = shape.as_str();
    match first {
        '*' => line.char_indices().map(|(at, _)| at).chain([line.len()]).any(|at| line_fits(rest, &line[at..])),
        '#' => (1..=taken(|c| c.is_ascii_digit())).any(|end| line_fits(rest, &line[end..])),
        '~' => (1..=taken(|c| c == ' ')).any(|end| line_fits(rest, &line[end..])),
        '%' => taken(|c| c.is_ascii_hexdigit() || c == ':') == 23 && line_fits(rest, &line[23..]),
        c => line.strip_prefix(c).is_some_and(|line| line_fits(rest, line)),
    }
}

fn fits(shape: &[&str], lines: &[&str]) -> bool {
    let (Some((first, others)), Some((line, more))) = (shape.split_first(), lines.split_first()) else {
        return shape.is_empty() && lines.is_empty();
    };
    let (pattern, many) = first.strip_prefix("+ ").map_or((*first, false), |pattern| (pattern, true));
    line_fits(pattern, line) && (fits(others, more) || many && fits(shape, more))
}

#[test]
fn every_command_has_a_known_shape() {
    let mut lab = Managed::start("fos-shapes", Some(18_080), &[]);
    let mut process = Command::new(SANLOOM);
    let process = process.args(["console", &lab.instance.path("lab.toml"), "sw2"]);
    let mut process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text: String = SHAPES.iter().map(|(line, _)| format!("{line}\n{MARK}\n")).collect();
    process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap();
    let outputs: Vec<&str> = output.split(MARKED).collect();
    assert_eq!(outputs.len(), SHAPES.len(), "{output}");
    let mut wrong = String::new();
    for ((line, shape), output) in SHAPES.iter().zip(&outputs) {
        let lines: Vec<&str> = output.lines().collect();
        if !fits(shape, &lines) || !output.is_empty() && !output.ends_with('\n') {
            wrong += &format!("{line}:\n{output}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let help = outputs[SHAPES.len() - 2];
    let all: BTreeSet<&str> = help.lines().filter_map(|line| line.split(' ').next()).collect();
    let tried: BTreeSet<&str> = SHAPES.iter().filter_map(|(line, _)| line.split([' ', '\n']).next()).collect();
    assert_eq!(all.difference(&tried).collect::<Vec<_>>(), Vec::<&&str>::new(), "commands without a shape");
    lab.instance.stop();
}
