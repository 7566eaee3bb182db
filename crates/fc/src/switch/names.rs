//! World-wide names of the ports and services of a switch.

use sanloom_wire::{Wwnn, Wwpn};

/// Lowest extended-name number reserved for services. A service uses the last three hexadecimal
/// digits of its address.
const FIRST_SERVICE: u16 = 0xf00;

/// IEEE extended name (format 2): twelve vendor-assigned bits followed by the 48 bits of `name`.
pub(super) fn extended_name(name: u64, number: u16) -> Wwpn {
    Wwpn(0x2 << 60 | u64::from(number & 0xfff) << 48 | name & 0xffff_ffff_ffff)
}

/// Unique name of a switch port. It contains the port number, which `port_number` extracts.
///
/// Ports up to 3,839 have extended names (format 2) of the switch, with the number in the twelve
/// vendor bits. Numbers from F00h on are reserved for the services of the switch.
///
/// Higher ports have EUI-64 mapped names (FC-FS, name identifier formats C to F): 22 bits of the
/// company, then 40 bits made of 24 bits of the switch and 16 bits of the port.
pub fn port_name(switch: Wwnn, port: u16) -> Wwpn {
    if port < FIRST_SERVICE {
        return extended_name(switch.0, port);
    }
    let (company, of_company) = (switch.0 >> 24 & 0xff_ffff, switch.0 & 0xff_ffff);
    let mapped_company = company >> 18 << 16 | company & 0xffff;
    Wwpn(0b11 << 62 | mapped_company << 40 | of_company << 16 | u64::from(port))
}

/// Port number in a [`port_name`]; `None` for a name of another format.
pub(super) fn port_number(name: Wwpn) -> Option<u16> {
    match name.0 >> 60 {
        0x2 => Some((name.0 >> 48 & 0xfff) as u16),
        0xc..=0xf => Some(name.0 as u16),
        _ => None,
    }
}
