//! State of the switch as a machine: its control processor, its resources, on and off.

use super::fault::Fault;
use super::logging;
use super::ports::{self, Port};
use super::room::Room;
use super::tree::Element;
use crate::server::process::Usage;
use sanloom_api::event_log::ClientEvent;
use sanloom_api::view::{Dark, SwitchRow};

/// GET of `ha-status`. A switch has one control processor.
pub fn ha_status(_: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let leaves = vec![Element::number("active-cp", 0), Element::bool("ha-enabled", false)];
    Ok(vec![Element::container("ha-status", leaves)])
}

/// GET of `system-resources`: those of the process that serves the switch.
pub fn resources(_: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let Some(Usage { processor_percent, memory_bytes, total_bytes }) = Usage::read() else {
        return Err(Fault::empty("No entries found"));
    };
    let leaves = vec![
        Element::number("cpu-usage", processor_percent),
        Element::number("memory-usage", memory_bytes.saturating_mul(100) / total_bytes.max(1)),
        Element::number("total-memory", total_bytes / 1_024),
    ];
    Ok(vec![Element::container("system-resources", leaves)])
}

/// Returns whether a client has disabled the switch, and none of its ports was enabled since.
/// `ports`: all ports of the switch.
pub fn is_disabled(room: &Room<'_>, ports: &[Port]) -> bool {
    room.shared.disabled().contains_key(&room.switch) && !ports.iter().any(has_line)
}

/// Returns whether the switch runs, is enabled and has a domain. `ports`: all ports of the switch.
pub fn is_online(room: &Room<'_>, own: &SwitchRow, ports: &[Port]) -> bool {
    own.up && own.domain.is_some() && !is_disabled(room, ports)
}

/// True for a port with a line that no operator has disabled.
fn has_line(port: &Port) -> bool {
    port.row.as_ref().is_some_and(|row| !matches!(row.dark, Some(Dark::Disabled | Dark::Unplugged)))
}

/// Disables all ports of the switch, or enables those that were disabled so. Ports that an operator
/// has disabled before stay disabled. If another process has disabled the switch by this, all ports
/// are enabled: only that process knows which ones it has disabled.
///
/// # Errors
/// The fabric refuses to change a port. Ports before it have changed; the same request again
/// changes the others.
pub fn set_enabled(room: &mut Room<'_>, enabled: bool) -> Result<(), Fault> {
    let switch = room.switch.clone();
    let (_, all) = ports::all(room)?;
    let known = room.shared.disabled().get(&switch).cloned();
    let is_of_another = enabled && known.is_none() && !all.iter().any(has_line) && logging::was_disabled(room)?;
    let mut done = known.unwrap_or_default();
    if is_of_another {
        done.extend(all.iter().filter(|port| port.disabled()).map(|port| port.number));
    }
    if enabled {
        for port in all.iter().filter(|port| done.contains(&port.number)) {
            ports::set_enabled(room, port, true)?;
        }
        if room.shared.disabled().remove(&switch).is_some() || !done.is_empty() {
            log(room, true);
        }
        return Ok(());
    }
    let mut outcome = Ok(());
    for port in all.iter().filter(|port| has_line(port)) {
        outcome = ports::set_enabled(room, port, false);
        if outcome.is_err() {
            break;
        }
        done.insert(port.number);
    }
    room.shared.disabled().insert(switch, done);
    if outcome.is_ok() {
        log(room, false);
    }
    outcome
}

/// Adds the change of the switch to the event log.
fn log(room: &mut Room<'_>, enabled: bool) {
    let (user, interface) = (room.who.user.clone(), room.interface.to_owned());
    room.log(ClientEvent::SwitchEnabled { enabled, user, interface });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fos::commands::ports::{enable, switch_show};
    use crate::fos::room::Who;
    use crate::fos::settings::{Mode, Shared};
    use crate::fos::switches;
    use crate::server::users::Role;
    use crate::server::{Now, Peer};
    use crate::snmp::{Value, mib};
    use crate::{Busy, Fabric};
    use sanloom_api::control::{Answer, Request, ShowTable};
    use sanloom_api::view::build::Which;
    use sanloom_api::view::{FabricView, FlogiView, PortRow, PortsView, SwitchView, Table, View};
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// A switch of three ports, of which an operator has disabled the last. It refuses one change.
    struct Three {
        disabled: BTreeSet<u32>,
        refused: Option<u32>,
    }

    /// A chassis of two logical switches with three ports each.
    struct Chassis([(&'static str, u16, Three); 2]);

    impl Fabric for Chassis {
        fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
            if let Request::Show { table: ShowTable::Fabric(Which::Switch), .. } = request {
                let row = |(name, id, _): &(&str, u16, Three)| {
                    let [switch, chassis] = [*name, "frame"].map(str::to_owned);
                    let (chassis, vf_id, domain) = (Some(chassis), Some(*id), Some(1));
                    SwitchRow { switch, chassis, vf_id, domain, up: true, ports: 3, ..SwitchRow::default() }
                };
                let table = Table::Switch(SwitchView { switches: self.0.iter().map(row).collect() });
                return Ok(Answer::View(View::new("lab", 1.0, table)));
            }
            let (switch, number) = match &request {
                Request::Port { port, .. } => port.rsplit_once(':').unwrap(),
                Request::Show { switch: Some(switch), .. } => (&**switch, ""),
                _ => return Err(Busy),
            };
            let (_, _, three) = self.0.iter_mut().find(|(name, ..)| *name == switch).unwrap();
            match request {
                Request::Port { enabled, .. } => three.ask(Request::Port { port: format!("sw1:{number}"), enabled }),
                other => three.ask(other),
            }
        }
    }

    impl Fabric for Three {
        fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
            let table = match request {
                Request::Port { port, enabled } => {
                    let number = port.rsplit_once(':').unwrap().1.parse().unwrap();
                    if self.refused == Some(number) {
                        return Err(Busy);
                    }
                    if enabled {
                        self.disabled.remove(&number)
                    } else {
                        self.disabled.insert(number)
                    };
                    return Ok(Answer::Done);
                }
                Request::Zone { .. } => return Ok(Answer::Zones(Box::default())),
                Request::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
                    let switch = "sw1".to_owned();
                    let row = SwitchRow { switch, up: true, domain: Some(1), ports: 3, ..SwitchRow::default() };
                    Table::Switch(SwitchView { switches: vec![row] })
                }
                Request::Show { table: ShowTable::Fabric(Which::Ports), .. } => {
                    let row = |number: u32| {
                        let dark = self.disabled.contains(&number).then_some(Dark::Disabled);
                        PortRow {
                            number,
                            port: format!("sw1:{number}"),
                            light: dark.is_none(),
                            dark,
                            ..PortRow::default()
                        }
                    };
                    Table::Ports(PortsView { ports: (0..3).map(row).collect() })
                }
                Request::Show { table: ShowTable::Fabric(Which::Flogi), .. } => Table::Flogi(FlogiView::default()),
                Request::Show { table: ShowTable::Fabric(Which::Fabric), .. } => {
                    let own = sanloom_api::view::FabricSwitch { switch: "sw1".to_owned(), ..Default::default() };
                    Table::Fabric(FabricView { switches: vec![own] })
                }
                _ => return Err(Busy),
            };
            Ok(Answer::View(View::new("lab", 1.0, table)))
        }
    }

    fn with<T>(fabric: &mut Three, shared: &Shared, act: impl FnOnce(&mut Room<'_>) -> T) -> T {
        at("sw1", fabric, shared, act)
    }

    /// Acts at the address of a switch.
    fn at<T>(switch: &str, fabric: &mut dyn Fabric, shared: &Shared, act: impl FnOnce(&mut Room<'_>) -> T) -> T {
        let [user, address] = ["admin", "127.0.0.1"].map(str::to_owned);
        let role = Role::Administer;
        let who = Who { session: "1".to_owned(), user, role, address, application: String::new() };
        let address = "127.0.0.1:80".parse().unwrap();
        let now = Now { elapsed: Duration::ZERO, unix_s: 0 };
        let peer = Peer { address, local: address, tls: false };
        act(&mut Room::new(fabric, switch, shared, Mode::default(), now, who, &peer))
    }

    /// Returns for each surface whether it shows the switch as online: REST, its policy, the
    /// command line, SNMP.
    fn shown(fabric: &mut Three, shared: &Shared) -> [bool; 4] {
        with(fabric, shared, |room| {
            let switch = switches::switch(room).unwrap().remove(0);
            assert_eq!(
                switch.leaf("is-enabled-state").unwrap() == "true",
                switch.leaf("enabled-state").unwrap() == "2"
            );
            assert_eq!(switch.leaf("enabled-state"), switch.leaf("operational-status"));
            let policy = switches::status_policy(room).unwrap().remove(0);
            let text = switch_show(room, &[]).unwrap().0;
            let state = mib::read(room).unwrap().get(&[1, 3, 6, 1, 4, 1, 1588, 2, 1, 1, 1, 1, 7, 0]);
            [
                switch.leaf("operational-status-string").unwrap() == "online",
                policy.leaf("switch-health").unwrap() == "healthy",
                text.contains("switchState:\tOnline"),
                state == Value::Integer(1),
            ]
        })
    }

    fn enable_switch(fabric: &mut Three, shared: &Shared, enabled: bool) -> Result<(), Fault> {
        with(fabric, shared, |room| set_enabled(room, enabled))
    }

    #[test]
    fn all_surfaces_agree_on_a_switch_that_a_client_disables_and_enables() {
        let (mut fabric, shared) = (Three { disabled: BTreeSet::from([2]), refused: None }, Shared::default());
        assert_eq!(shown(&mut fabric, &shared), [true; 4]);
        enable_switch(&mut fabric, &shared, false).unwrap();
        assert_eq!(shown(&mut fabric, &shared), [false; 4]);
        // Its ports one by one, too.
        with(&mut fabric, &shared, |room| enable(room, &["0".to_owned()])).unwrap();
        assert_eq!(shown(&mut fabric, &shared), [true; 4]);
        assert_eq!(fabric.disabled, BTreeSet::from([1, 2]));
        enable_switch(&mut fabric, &shared, true).unwrap();
        assert_eq!(fabric.disabled, BTreeSet::from([2]), "the operator's port stays disabled");
        assert_eq!(shown(&mut fabric, &shared), [true; 4]);
        // An operator of the lab enables a port.
        enable_switch(&mut fabric, &shared, false).unwrap();
        fabric.disabled.remove(&1);
        assert_eq!(shown(&mut fabric, &shared), [true; 4]);
    }

    #[test]
    fn a_logical_switch_that_is_disabled_at_another_address_of_its_chassis_is_offline_at_its_own() {
        let three = || Three { disabled: BTreeSet::new(), refused: None };
        let mut fabric = Chassis([("sw1", 10, three()), ("sw2", 20, three())]);
        let first = Shared::default();
        let second = first.beside();
        let states = |fabric: &mut Chassis| {
            [("sw1", &first), ("sw2", &second)].map(|(name, shared)| {
                let switch = at(name, fabric, shared, |room| switches::switch(room).unwrap().remove(0));
                switch.leaf("operational-status-string").unwrap()
            })
        };
        for (enabled, expected) in [(false, ["online", "offline"]), (true, ["online", "online"])] {
            let change = |room: &mut Room<'_>| {
                room.select(Some(20))?;
                let state = Element::number("enabled-state", if enabled { 2 } else { 3 });
                switches::patch_switch(room, &Element::entry("fibrechannel-switch", vec![state]))
            };
            at("sw1", &mut fabric, &first, change).unwrap();
            assert_eq!(states(&mut fabric), expected);
            assert_eq!(fabric.0.each_ref().map(|(.., three)| three.disabled.len()), [0, if enabled { 0 } else { 3 }]);
        }
        second.lock().names.insert("switch".to_owned(), "edge".to_owned());
        assert_eq!(first.name("switch"), None, "each switch has its own settings");
    }

    #[test]
    fn a_change_with_a_wrong_value_changes_nothing() {
        let (mut fabric, shared) = (Three { disabled: BTreeSet::new(), refused: None }, Shared::default());
        for wrong in ["user-friendly-name", "fabric-user-friendly-name", "banner", "enabled-state"] {
            let mut leaves = vec![
                Element::text("user-friendly-name", "core"),
                Element::text("banner", "hello"),
                Element::number("enabled-state", 3_u32),
            ];
            leaves.push(Element::text(wrong, "x".repeat(2_000)));
            let entry = Element::entry("fibrechannel-switch", leaves);
            let fault = with(&mut fabric, &shared, |room| switches::patch_switch(room, &entry)).unwrap_err();
            assert_eq!(fault.status, 400, "{wrong}");
            assert!(fabric.disabled.is_empty() && shared.lock().names.is_empty(), "{wrong}");
        }
        for (wrong, value) in [("user-friendly-name", "x".repeat(129)), ("enabled-state", "7".to_owned())] {
            let mut leaves = vec![Element::text("name", "0/1"), Element::text("user-friendly-name", "array")];
            leaves.extend([Element::number("enabled-state", 6_u32), Element::text(wrong, value)]);
            let entry = Element::entry("fibrechannel", leaves);
            let fault = with(&mut fabric, &shared, |room| ports::patch_port(room, &entry)).unwrap_err();
            assert_eq!(fault.status, 400, "{wrong}");
            assert!(fabric.disabled.is_empty() && shared.lock().names.is_empty(), "{wrong}");
        }
    }

    #[test]
    fn a_change_of_the_switch_that_the_fabric_has_refused_can_be_repeated() {
        let (mut fabric, shared) = (Three { disabled: BTreeSet::from([2]), refused: Some(1) }, Shared::default());
        assert_eq!(enable_switch(&mut fabric, &shared, false).unwrap_err().status, 503);
        assert_eq!(shown(&mut fabric, &shared), [true; 4], "a port runs");
        fabric.refused = None;
        enable_switch(&mut fabric, &shared, false).unwrap();
        assert_eq!(fabric.disabled, BTreeSet::from([0, 1, 2]));
        fabric.refused = Some(1);
        assert_eq!(enable_switch(&mut fabric, &shared, true).unwrap_err().status, 503);
        assert_eq!(fabric.disabled, BTreeSet::from([1, 2]));
        fabric.refused = None;
        enable_switch(&mut fabric, &shared, true).unwrap();
        assert_eq!(fabric.disabled, BTreeSet::from([2]));
        assert_eq!(shown(&mut fabric, &shared), [true; 4]);
    }
}
