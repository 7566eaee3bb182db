//! Configuration files of `fcoemon`, `cfg-IF` in the format of `/etc/fcoe`: [`Wanted`].

use sanloom_console::endpoint::PortName;
use sanloom_wire::ether::MacAddr;
use std::collections::BTreeMap;
use std::path::Path;

/// Configuration of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    /// FCOE_ENABLE.
    pub(super) enable: bool,
    /// DCB_REQUIRED: FCoE waits for DCBX.
    pub(super) dcb: bool,
    /// AUTO_VLAN: forwarders report the VLAN.
    pub(super) auto_vlan: bool,
    /// MODE.
    pub(super) vn2vn: bool,
    /// FIP_RESP: answer requests for the VLAN of a VN2VN segment.
    pub(super) responder: bool,
    /// PORT: the port, if it is not a network interface.
    pub(super) port: PortName,
    /// MAC: MAC address, if the port has none.
    pub(super) mac: Option<MacAddr>,
    /// VLAN: its identifier, if it is not discovered. 0 never comes from a file; it is an untagged
    /// VLAN that a forwarder reported.
    pub(super) vlan: Option<u16>,
}

impl Wanted {
    /// Returns whether forwarders report the VLANs and each gets its own host. Unix sockets and
    /// taps support only one host, which uses the first VLAN.
    pub(super) fn has_many_vlans(&self) -> bool {
        self.auto_vlan && self.vlan.is_none() && !self.vn2vn && matches!(self.port, PortName::Interface(_))
    }

    /// Creates the configuration of an instance without a file, directly on the interface.
    pub(super) fn on(interface: &str, vn2vn: bool) -> Result<Wanted, String> {
        Ok(Wanted {
            enable: true,
            dcb: false,
            auto_vlan: false,
            vn2vn,
            responder: false,
            port: PortName::parse(interface)?,
            mac: None,
            vlan: None,
        })
    }

    /// Parses the text of a file. Missing keys mean "no"; unknown keys belong to other programs and
    /// are ignored.
    pub(super) fn parse(interface: &str, text: &str) -> Result<Wanted, String> {
        let mut wanted = Wanted { enable: false, ..Wanted::on(interface, false)? };
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| format!("line {number}: {why}");
            let (key, value) = line.split_once('=').ok_or_else(|| wrong("write it as KEY=\"value\""))?;
            let value = value.trim().trim_matches(['"', '\'']);
            let switch = || match value.to_ascii_lowercase().as_str() {
                "yes" => Ok(true),
                "no" | "" => Ok(false),
                _ => Err(wrong("write \"yes\" or \"no\"")),
            };
            match key.trim() {
                "FCOE_ENABLE" => wanted.enable = switch()?,
                "DCB_REQUIRED" => wanted.dcb = switch()?,
                "AUTO_VLAN" => wanted.auto_vlan = switch()?,
                "FIP_RESP" => wanted.responder = switch()?,
                "MODE" => {
                    wanted.vn2vn = match value {
                        "fabric" | "" => false,
                        "vn2vn" => true,
                        _ => return Err(wrong("MODE is \"fabric\" or \"vn2vn\"")),
                    }
                }
                "PORT" => wanted.port = PortName::parse(value).map_err(|why| wrong(&why))?,
                "MAC" => wanted.mac = Some(value.parse().map_err(|_| wrong("MAC is no Ethernet address"))?),
                "VLAN" => {
                    let vlan = value.parse().ok().filter(|vlan| (1..=4_094).contains(vlan));
                    wanted.vlan = Some(vlan.ok_or_else(|| wrong("VLAN is a number from 1 to 4094"))?);
                }
                _ => {}
            }
        }
        if wanted.vn2vn && wanted.auto_vlan && wanted.vlan.is_none() {
            return Err("a VN2VN segment has no VLAN discovery: add VLAN=\"…\", or set AUTO_VLAN=\"no\"".to_owned());
        }
        Ok(wanted)
    }
}

/// Reads a folder. Returns the configuration by interface, or the reason why a file is unusable.
pub(super) fn read(folder: &Path) -> BTreeMap<String, Result<Wanted, String>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let interface = name.strip_prefix("cfg-")?.to_owned();
        let text = std::fs::read_to_string(entry.path()).map_err(|error| error.to_string());
        let wanted = text.and_then(|text| Wanted::parse(&interface, &text));
        Some((interface, wanted))
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_debian_is_read() {
        let text = "## Type: yes/no\nFCOE_ENABLE=\"yes\"\nDCB_REQUIRED=\"yes\"\nAUTO_VLAN=\"yes\"\nMODE=\"fabric\"\n#FIP_RESP=\"yes\"\nSUPPORTED_DRIVERS=\"x\"\n";
        let wanted = Wanted::parse("eth2", text).unwrap();
        assert!(wanted.enable && wanted.dcb && wanted.auto_vlan && !wanted.vn2vn && !wanted.responder);
        assert_eq!(wanted.port, PortName::Interface("eth2".into()));
        assert!(!Wanted::parse("eth2", "").unwrap().enable);
    }

    #[test]
    fn a_station_may_answer_vlan_requests() {
        let text = "FCOE_ENABLE=yes\nMODE=\"vn2vn\"\nFIP_RESP=\"yes\"\nVLAN=\"7\"\nPORT=\"stream:/s\"\nMAC=\"02:00:00:00:00:01\"";
        let wanted = Wanted::parse("lab", text).unwrap();
        assert!(wanted.vn2vn && wanted.responder && wanted.vlan == Some(7) && wanted.mac.is_some());
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, why) in [
            ("FCOE_ENABLE", "line 1: write it as"),
            ("\nDCB_REQUIRED=\"maybe\"", "line 2: write \"yes\""),
            ("MODE=\"other\"", "MODE is"),
            ("VLAN=\"4095\"", "VLAN is"),
            ("MAC=\"x\"", "MAC is"),
            ("PORT=\"serial:1\"", "line 1: no port"),
            ("MODE=\"vn2vn\"\nAUTO_VLAN=\"yes\"", "no VLAN discovery"),
        ] {
            let reason = Wanted::parse("eth2", text).unwrap_err();
            assert!(reason.contains(why), "{reason}");
        }
    }
}
