//! Values that are there and cannot be read are in a note with their line.

use super::trunks::run;
use sanloom_lab::import::{Imported, Note, NoteKind};

fn bad(imported: &Imported) -> Vec<&Note> {
    imported.account.notes.iter().filter(|note| note.kind <= NoteKind::Unplaced).collect()
}

/// Each change of one line of a text that has no bad line is in a note with the number of the line.
fn each_is_reported(name: &str, text: &str, changes: &[(&str, &str)]) {
    let whole = run(&[(name, text.to_owned())]);
    assert!(bad(&whole).is_empty(), "{:?}", bad(&whole));
    for (old, new) in changes {
        let index = text.lines().position(|line| line.contains(old)).unwrap_or_else(|| panic!("no {old}"));
        let changed = text.replacen(old, new, 1);
        let imported = run(&[(name, changed.clone())]);
        let line = index as u32 + 1;
        let found = bad(&imported).iter().any(|note| note.places.iter().any(|place| place.line == line));
        assert!(found, "{new} in line {line}: {:?}\n{changed}", imported.account.notes);
    }
}

/// Each kind of output of Fabric OS about ports and names.
pub const FOS: &str = "sw1:admin> switchshow
switchName:\tsw1
switchDomain:\t1
switchWwn:\t10:00:c4:f5:7c:01:02:03

Index Port Address Media Speed       State   Proto
==================================================
   0   0   010000   id    N32\t  Online      FC  F-Port  10:00:00:10:9b:40:01:a1
   1   1   010100   id    N16\t  Online      FC  F-Port  1 N Port + 2 NPIV public
   2   2   010200   id    N99\t  No_Light    FC  
   3   3   010300   id    N16\t  Online      FC  E-Port  10:00:c4:f5:7c:01:02:04 \"sw2\" (upstream)
   6   6   010600   id    N16\t  Offline     FC  G-Port
sw1:admin> islshow
  1:  3->  8 10:00:c4:f5:7c:01:02:04   2 sw2                    sp: 16.000G bw: 16.000G TRUNK QOS
sw1:admin> trunkshow
  1:  3->  8 10:00:c4:f5:7c:01:02:04   2 deskew 15 MASTER
sw1:admin> fabricshow
Switch ID   Worldwide Name           Enet IP Addr    FC IP Addr      Name
-------------------------------------------------------------------------
  1: fffc01 10:00:c4:f5:7c:01:02:03 192.0.2.1      0.0.0.0        >\"sw1\"
  2: fffc02 10:00:c4:f5:7c:01:02:04 192.0.2.2      0.0.0.0         \"sw2\"
                                    2001:db8::2
sw1:admin> portshow 1
portIndex:   1
portState: 1    Online   
portWwn of device(s) connected:
        10:00:00:10:9b:40:01:a2
portSpeed: N16Gbps
sw1:admin> nsshow
{
 Type Pid    COS     PortName                NodeName                 TTL(sec)
 N    010000;      3;10:00:00:10:9b:40:01:a1;20:00:00:10:9b:40:01:a1; na
    Fabric Port Name: 20:00:c4:f5:7c:01:02:03
    Permanent Port Name: 10:00:00:10:9b:40:01:a1
    Device type: Physical Initiator
    Port Index: 0
    Device link speed: 32G
}
";

#[test]
fn a_value_of_fabric_os_that_cannot_be_read_is_reported() {
    each_is_reported(
        "sw1.txt",
        FOS,
        &[
            ("N32\t", "N99\t"),
            ("010000   id", "zz9zz   id"),
            ("F-Port  10:00:00:10:9b:40:01:a1", "F-Port  10:00:00:10:9b:40:01"),
            ("Offline     FC  G-Port", "Online      FC  G-Port"),
            ("Offline     FC  G-Port", "Online      FC  N-Port  10:00:00:10:9b:40:01:a9"),
            ("Offline     FC  G-Port", "Online      FC"),
            ("04   2 sw2", "04   300 sw2"),
            ("sp: 16.000G", "sp: 99.000G"),
            ("bw: 16.000G", "bw: lots"),
            ("04   2 deskew", "04   zz deskew"),
            ("  2: fffc02", "  300: fffc02"),
            ("fffc02 10:00:c4:f5:7c:01:02:04", "fffc02 10:00:c4:f5:7c:01"),
            ("2001:db8::2", "2001:db8::2::2"),
            ("portSpeed: N16Gbps", "portSpeed: N99Gbps"),
            ("20:00:00:10:9b:40:01:a1; na", "20:00:00; na"),
            ("Name: 20:00:c4:f5:7c:01:02:03", "Name: 20:00"),
            ("Port Name: 10:00:00:10:9b:40:01:a1", "Port Name: 10:00"),
            ("Physical Initiator", "zz9zz"),
            ("Port Index: 0", "Port Index: zz"),
            ("speed: 32G", "speed: 99G"),
        ],
    );
}

#[test]
fn two_rows_of_one_port_with_different_speeds_are_a_conflict_and_the_first_is_kept() {
    let row = |rate: &str, state: &str| {
        format!("   0   0   010000   id    {rate}\t  {state}   FC  F-Port  10:00:00:10:9b:40:01:a1\n")
    };
    let head = "switchName:\tsw1\nswitchDomain:\t1\nIndex Port Address Media Speed       State   Proto\n";
    let imported = run(&[("sw1.txt", format!("{head}{}{}", row("N32", "Online"), row("N16", "Online")))]);
    let found = bad(&imported);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, NoteKind::Conflict);
    assert_eq!(found[0].places.iter().map(|place| place.line).collect::<Vec<_>>(), [4, 5]);
    assert!(imported.lab.contains("rate = \"32GFC\"") && !imported.lab.contains("16GFC"), "{}", imported.lab);
    // A port without light has the rate of its optics.
    let imported = run(&[("sw1.txt", format!("{head}{}{}", row("N32", "No_Light"), row("N16", "Online")))]);
    assert!(bad(&imported).is_empty(), "{:?}", bad(&imported));
    assert!(imported.lab.contains("rate = \"16GFC\""), "{}", imported.lab);
}

const REST: &str = r#"{"Response":{"fibrechannel-switch":[{"name":"10:00:d8:1f:cc:30:0c:00",
"domain-id":31,
"vf-id":-1,
"user-friendly-name":"sanC1"}]}}
{"Response":{"fibrechannel":[{"name":"0/0",
"wwn":"20:00:d8:1f:cc:30:0c:00",
"port-type":15,
"speed":32000000000,
"operational-status":2,"index":0,
"neighbor":{"wwn":["10:00:00:10:9b:60:01:a3"]}},
{"name":"0/1","wwn":"20:01:d8:1f:cc:30:0c:00","port-type":17,"speed":5000000000,"operational-status":3,"index":1,
"neighbor":{"wwn":[]}}]}}
{"Response":{"effective-configuration":{"cfg-name":"",
"default-zone-access":0}}}
"#;

#[test]
fn a_value_of_the_rest_interface_that_cannot_be_read_is_reported() {
    each_is_reported(
        "rest.json",
        REST,
        &[
            ("10:00:d8:1f:cc:30:0c:00", "10:00:d8"),
            ("31", "301"),
            ("-1", "129"),
            ("20:00:d8:1f:cc:30:0c:00", "zz"),
            ("\"port-type\":15", "\"port-type\":\"zz\""),
            ("32000000000", "5000000000"),
            ("10:00:00:10:9b:60:01:a3", "nonsense"),
            ("\"default-zone-access\":0", "\"default-zone-access\":7"),
        ],
    );
    // A loop, and a port that is online with a neighbour, of another kind.
    for kind in ["16", "19", "null,\"port-type-string\":\"ex-port\""] {
        let text = REST.replace("\"port-type\":15", &format!("\"port-type\":{kind}"));
        let imported = run(&[("rest.json", text)]);
        assert!(bad(&imported).iter().any(|note| note.reason.contains("of a kind")), "{:?}", imported.account.notes);
    }
    let text = REST.replace("\"port-type\":15", "\"port-type\":10");
    let imported = run(&[("rest.json", text)]);
    assert!(bad(&imported).iter().any(|note| note.reason.contains("of a kind")), "{:?}", imported.account.notes);
}

/// Outputs of NX-OS with states.
pub const NX: &str = "m1# show interface brief
-------------------------------------------------------------------------------
Interface  Vsan   Admin  Admin   Status       SFP    Oper  Oper   Port     Logical
                  Mode   Trunk                       Mode  Speed  Channel   Type
                         Mode                              (Gbps)
-------------------------------------------------------------------------------
fc1/1      20     auto   on      up           swl    F     16     --       edge
fc1/2      20     auto   on      notConnected swl    --    --     --       --
port-channel7 20  auto   on      trunking     TE    48    
m1# show zone status
VSAN: 20 default-zone: deny distribute: active only Interop: default
    mode: basic merge-control: allow
    smart-zoning: disabled
m1# show flogi database
fc1/1  20  0x650000  10:00:00:10:9b:1c:00:01 20:00:00:10:9b:1c:00:01
m1# show running-config
switchname m1
interface fc1/1
  switchport speed 16000
interface fc1/9
  channel-group 7 force
m1# show topology vsan 20
FC Topology for VSAN 20 :
port-channel7 0x66(102) port-channel3 192.0.2.9(m2)
";

#[test]
fn a_value_of_nx_os_that_cannot_be_read_is_reported() {
    each_is_reported(
        "m1.txt",
        NX,
        &[
            ("F     16", "F     99"),
            ("fc1/1      20", "fc1/1      zz"),
            ("zone: deny", "zone: zz"),
            ("mode: basic", "mode: zz"),
            ("smart-zoning: disabled", "smart-zoning: zz"),
            ("20  0x650000", "20  0xzz"),
            ("20:00:00:10:9b:1c:00:01", "20:00"),
            ("speed 16000", "speed 99000"),
            ("channel-group 7", "channel-group zz"),
        ],
    );
}
