//! One request at a switch: [`Session`].

use super::reply::{Outcome, Problem, Shown, failed};
use super::settings::Shared;
use crate::fos::fault::Fault;
use crate::fos::ports::{self, Port};
use crate::fos::room::Room;
use sanloom_api::view::SwitchRow;
use sanloom_api::zone_database::Database;
use std::collections::{BTreeMap, BTreeSet};

/// VSAN of a switch without virtual fabrics.
const DEFAULT_VSAN: u16 = 1;

/// Object that the commands of a configuration concern.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// No object.
    #[default]
    Top,
    /// A zone of a VSAN.
    Zone(u16, String),
    /// A zone set of a VSAN.
    Set(u16, String),
    /// An FC alias of a VSAN.
    Alias(u16, String),
    /// The VSANs.
    Vsans,
    /// The device aliases.
    DeviceAliases,
    /// Ports by number.
    Interfaces(Vec<u32>),
}

/// A port with its VSAN.
pub struct Placed {
    /// VSAN of the port.
    pub vsan: u16,
    /// Switch of the lab.
    pub switch: String,
    /// The port.
    pub port: Port,
}

/// Commands of one request, and their place in the configuration.
pub struct Session<'a> {
    /// Access to the fabric.
    pub room: Room<'a>,
    /// Settings of the chassis.
    pub nx: &'a Shared,
    /// Object of the commands.
    pub place: Place,
    /// VSANs in the basic mode with changes that are not in force yet.
    pub touched: BTreeSet<u16>,
    /// Switch of the address.
    pub home: String,
    switches: Vec<(u16, SwitchRow)>,
}

/// Name of a port, such as `fc1/1`. Ports count from 1, and there is one slot.
pub fn interface(number: u32) -> String {
    format!("fc1/{}", u64::from(number) + 1)
}

/// Number of a port.
pub fn number(name: &str) -> Option<u32> {
    name.strip_prefix("fc1/").or_else(|| name.strip_prefix("fc 1/"))?.parse::<u32>().ok()?.checked_sub(1)
}

/// Numbers of ports in a list such as `fc1/1-4, fc1/7`.
pub fn numbers(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let part = part.trim().replace(' ', "");
        match part.split_once('-') {
            None => all.push(number(&part)?),
            Some((first, last)) => {
                let (first, last) = (number(&part[..first.len()])?, last.strip_prefix("fc1/").unwrap_or(last));
                let last = last.parse::<u32>().ok()?.checked_sub(1)?;
                if last < first || last - first >= 4_096 {
                    return None;
                }
                all.extend(first..=last);
            }
        }
        if all.len() > 4_096 {
            return None;
        }
    }
    Some(all)
}

impl<'a> Session<'a> {
    /// Starts a request. Nothing is asked before the first command.
    pub fn new(room: Room<'a>, nx: &'a Shared) -> Session<'a> {
        let home = room.switch.clone();
        nx.lock().renew(&room.who.session, room.now.elapsed);
        Session { room, nx, place: Place::Top, touched: BTreeSet::new(), home, switches: Vec::new() }
    }

    /// Directs the next requests to the switch of the address.
    pub fn enter_home(&mut self) {
        self.room.enter(&self.home);
    }

    /// Description of a port that a client has given.
    pub fn description(&self, placed: &Placed) -> Option<String> {
        self.room.shared.of(&placed.switch).name(&placed.port.key())
    }

    /// VSANs of the chassis with their switches. A switch without virtual fabrics has the VSAN 1.
    pub fn vsans(&mut self) -> Result<Vec<(u16, SwitchRow)>, Fault> {
        if self.switches.is_empty() {
            self.enter_home();
            let own = self.room.own()?;
            let mut all = match own.chassis {
                None => vec![(DEFAULT_VSAN, own)],
                Some(chassis) => {
                    let rows = self.room.switches()?.into_iter();
                    let same = rows.filter(|row| row.chassis.as_ref() == Some(&chassis));
                    same.filter_map(|row| Some((row.vf_id?, row))).collect()
                }
            };
            all.sort_by_key(|(vsan, _)| *vsan);
            self.switches = all;
        }
        Ok(self.switches.clone())
    }

    /// The VSANs that a command shows: the one that it names, or all.
    ///
    /// # Errors
    /// The chassis has no such VSAN.
    pub fn wanted(&mut self, vsan: Option<u16>) -> Result<Vec<(u16, SwitchRow)>, Problem> {
        let all = self.vsans()?;
        let Some(vsan) = vsan else { return Ok(all) };
        let found: Vec<(u16, SwitchRow)> = all.into_iter().filter(|(own, _)| *own == vsan).collect();
        match found.is_empty() {
            true => Err(super::reply::absent(format_args!("VSAN {vsan} is not configured"))),
            false => Ok(found),
        }
    }

    /// Directs the next requests to the switch of a VSAN.
    ///
    /// # Errors
    /// The chassis has no such VSAN.
    pub fn select(&mut self, vsan: u16) -> Result<SwitchRow, Problem> {
        let found = self.vsans()?.into_iter().find(|(own, _)| *own == vsan);
        let (_, row) = found.ok_or_else(|| failed(format_args!("VSAN {vsan} is not configured")))?;
        self.room.enter(&row.switch);
        Ok(row)
    }

    /// All ports of the chassis in the order of their numbers.
    pub fn ports(&mut self) -> Result<Vec<Placed>, Problem> {
        let mut all = Vec::new();
        for (vsan, row) in self.vsans()? {
            self.room.enter(&row.switch);
            let (_, ports) = ports::all(&mut self.room)?;
            all.extend(ports.into_iter().map(|port| Placed { vsan, switch: row.switch.clone(), port }));
        }
        self.enter_home();
        all.sort_by_key(|placed| placed.port.number);
        Ok(all)
    }

    /// Device aliases of the chassis in force: names and port names.
    pub fn device_aliases(&mut self) -> Result<BTreeMap<String, String>, Problem> {
        let mut all = BTreeMap::new();
        for (vsan, _) in self.vsans()? {
            self.select(vsan)?;
            let committed = self.room.zone_status()?.committed;
            all.extend(self.aliases_of(vsan, &committed));
        }
        self.enter_home();
        Ok(all)
    }

    /// Device aliases of a database: the aliases of one port name each. A port has one device
    /// alias, so its further aliases are fcaliases.
    pub fn aliases_of(&self, vsan: u16, database: &Database) -> BTreeMap<String, String> {
        let fcaliases = self.nx.vsan(vsan).fcaliases;
        let mut ports = BTreeSet::new();
        let one = |(name, members): (&String, &Vec<String>)| match &members[..] {
            [member] if is_port_name(member) && !fcaliases.contains(name) && ports.insert(member.clone()) => {
                Some((name.clone(), member.clone()))
            }
            _ => None,
        };
        database.aliases.iter().filter_map(one).collect()
    }

    /// Name of a VSAN.
    pub fn name_of(&self, vsan: u16) -> String {
        self.nx.vsan(vsan).name.unwrap_or_else(|| format!("VSAN{vsan:04}"))
    }
}

/// True for a world-wide name without a mark.
pub fn is_port_name(member: &str) -> bool {
    member.len() == 23 && member.split(':').count() == 8
}

/// A world-wide name with eight bytes of two digits each, from one with or without leading zeros.
pub fn world_wide_name(text: &str) -> Option<String> {
    let bytes: Vec<u8> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16).ok().filter(|_| part.len() <= 2))
        .collect::<Option<_>>()?;
    let is_whole = bytes.len() == 8 && !text.contains('+');
    is_whole.then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
}

/// A command that prints nothing.
pub fn done() -> Outcome {
    Ok(Shown::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_of_one_slot() {
        assert_eq!(numbers("fc1/1-3, fc1/7"), Some(vec![0, 1, 2, 6]));
        assert_eq!(numbers("fc1/1 - 2"), Some(vec![0, 1]));
        assert_eq!(numbers("fc1/2-fc1/3"), Some(vec![1, 2]));
        assert_eq!((number("fc 1/5"), interface(4)), (Some(4), "fc1/5".to_owned()));
        assert_eq!(
            (numbers("fc1/0"), numbers("fc2/1"), numbers("fc1/3-1"), numbers("fc1/1-9999")),
            (None, None, None, None)
        );
    }

    #[test]
    fn names_may_lack_leading_zeros() {
        assert_eq!(world_wide_name("5:0:2:3:4:A:6:7").as_deref(), Some("05:00:02:03:04:0a:06:07"));
        assert_eq!(world_wide_name("50:00:02:03:04:05:06"), None);
        assert_eq!(world_wide_name("50:00:02:03:04:05:06:+7"), None);
    }
}
