//! State of the switch as a machine: its control processor, its resources, on and off.

use super::fault::Fault;
use super::room::Room;
use super::tree::Element;
use crate::server::process::Usage;
use sanloom_api::control::Request;
use sanloom_api::view::SwitchRow;

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

/// Returns whether the switch runs, is enabled and has a domain.
pub fn is_online(own: &SwitchRow) -> bool {
    own.up && !own.disabled && own.domain.is_some()
}

/// Disables or enables the switch. Ports that are disabled themselves stay so.
///
/// # Errors
/// The fabric is busy.
pub fn set_enabled(room: &mut Room<'_>, enabled: bool) -> Result<(), Fault> {
    let (switch, by) = (room.switch.clone(), Some(room.user()));
    room.ask(Request::Switch { switch, enabled, by })?;
    room.forget();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fos::commands::ports::{disable, enable, switch_show};
    use crate::fos::ports;
    use crate::fos::room::Who;
    use crate::fos::settings::{Mode, Shared};
    use crate::fos::switches;
    use crate::server::users::Role;
    use crate::server::{Now, Peer};
    use crate::snmp::{Value, mib};
    use crate::{Busy, Fabric};
    use sanloom_api::control::{Answer, PortChange, ShowTable};
    use sanloom_api::view::build::Which;
    use sanloom_api::view::{Dark, FabricView, FlogiView, PortRow, PortsView, SwitchView, Table, View};
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// A switch of three ports.
    #[derive(Default)]
    struct Three {
        /// Ports that an operator has disabled.
        disabled: BTreeSet<u32>,
        off: bool,
        /// Senders of the changes, as `USER INTERFACE`.
        users: Vec<String>,
    }

    /// A chassis of two logical switches with three ports each.
    struct Chassis([(&'static str, u16, Three); 2]);

    impl Fabric for Chassis {
        fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
            if let Request::Show { table: ShowTable::Fabric(Which::Switch), .. } = request {
                let row = |(name, id, three): &(&str, u16, Three)| {
                    let [switch, chassis] = [*name, "frame"].map(str::to_owned);
                    SwitchRow { switch, chassis: Some(chassis), vf_id: Some(*id), ..three.row() }
                };
                let table = Table::Switch(SwitchView { switches: self.0.iter().map(row).collect() });
                return Ok(Answer::View(View::new("lab", 1.0, table)));
            }
            let (Request::Switch { switch, .. } | Request::Show { switch: Some(switch), .. }) = &request else {
                return Err(Busy);
            };
            let (_, _, three) = self.0.iter_mut().find(|(name, ..)| name == switch).unwrap();
            three.ask(request)
        }
    }

    impl Three {
        fn row(&self) -> SwitchRow {
            let switch = "sw1".to_owned();
            SwitchRow { switch, up: true, disabled: self.off, domain: Some(1), ports: 3, ..SwitchRow::default() }
        }
    }

    impl Fabric for Three {
        fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
            if let Request::Ports { by: Some(by), .. } | Request::Switch { by: Some(by), .. } = &request {
                self.users.push(format!("{} {}", by.user, by.interface));
            }
            let table = match request {
                Request::Ports { changes, .. } => {
                    for PortChange { port, enabled } in changes {
                        let number = port.rsplit_once(':').unwrap().1.parse().unwrap();
                        _ = if enabled { self.disabled.remove(&number) } else { self.disabled.insert(number) };
                    }
                    return Ok(Answer::Done);
                }
                Request::Switch { enabled, .. } => {
                    self.off = !enabled;
                    return Ok(Answer::Done);
                }
                Request::Zone { .. } => return Ok(Answer::Zones(Box::default())),
                Request::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
                    Table::Switch(SwitchView { switches: vec![self.row()] })
                }
                Request::Show { table: ShowTable::Fabric(Which::Ports), .. } => {
                    let row = |number: u32| {
                        let dark = match () {
                            () if self.disabled.contains(&number) => Some(Dark::Disabled),
                            () => self.off.then_some(Dark::SwitchDisabled),
                        };
                        let (port, light) = (format!("sw1:{number}"), dark.is_none());
                        PortRow { number, port, light, dark, ..PortRow::default() }
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

    /// Ports that REST shows as disabled.
    fn disabled_ports(fabric: &mut Three, shared: &Shared) -> Vec<String> {
        with(fabric, shared, |room| {
            let ports = ports::fibrechannel(room).unwrap();
            let disabled = ports.iter().filter(|port| port.leaf("enabled-state").unwrap() == "6");
            disabled.map(|port| port.leaf("name").unwrap()).collect()
        })
    }

    fn enable_switch(fabric: &mut Three, shared: &Shared, enabled: bool) {
        with(fabric, shared, |room| set_enabled(room, enabled)).unwrap();
    }

    #[test]
    fn all_surfaces_agree_on_a_switch_that_a_client_disables_and_enables() {
        let (mut fabric, shared) = (Three::default(), Shared::default());
        fabric.disabled.insert(2);
        assert_eq!(shown(&mut fabric, &shared), [true; 4]);
        enable_switch(&mut fabric, &shared, false);
        assert_eq!(shown(&mut fabric, &shared), [false; 4]);
        assert_eq!(shown(&mut fabric, &Shared::default()), [false; 4], "in another process, too");
        assert_eq!(disabled_ports(&mut fabric, &shared), ["0/2"], "the others keep their state");
        // Its ports change one by one, and the switch stays offline.
        with(&mut fabric, &shared, |room| disable(room, &["0".to_owned()])).unwrap();
        with(&mut fabric, &shared, |room| enable(room, &["2".to_owned()])).unwrap();
        assert_eq!(disabled_ports(&mut fabric, &shared), ["0/0"]);
        assert_eq!(shown(&mut fabric, &shared), [false; 4]);
        enable_switch(&mut fabric, &shared, true);
        assert_eq!(shown(&mut fabric, &shared), [true; 4]);
        assert_eq!(disabled_ports(&mut fabric, &shared), ["0/0"], "the state of the ports is kept");
        assert_eq!(fabric.users, ["admin REST"; 4]);
    }

    #[test]
    fn a_logical_switch_that_is_disabled_at_another_address_of_its_chassis_is_offline_at_its_own() {
        let mut fabric = Chassis([("sw1", 10, Three::default()), ("sw2", 20, Three::default())]);
        let [first, second] = [Shared::default(), Shared::default()];
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
                switches::patch_switch(room, &Element::entry("fibrechannel-switch", vec![state]))?(room)
            };
            at("sw1", &mut fabric, &first, change).unwrap();
            assert_eq!(states(&mut fabric), expected);
        }
        second.lock().names.insert("switch".to_owned(), "edge".to_owned());
        assert_eq!(first.name("switch"), None, "each switch has its own settings");
    }

    #[test]
    fn a_change_with_a_wrong_value_changes_nothing() {
        let (mut fabric, shared) = (Three::default(), Shared::default());
        for wrong in ["user-friendly-name", "fabric-user-friendly-name", "banner", "enabled-state"] {
            let mut leaves = vec![
                Element::text("user-friendly-name", "core"),
                Element::text("banner", "hello"),
                Element::number("enabled-state", 3_u32),
            ];
            leaves.push(Element::text(wrong, "x".repeat(2_000)));
            let entry = Element::entry("fibrechannel-switch", leaves);
            let fault = with(&mut fabric, &shared, |room| switches::patch_switch(room, &entry).map(drop)).unwrap_err();
            assert_eq!(fault.status, 400, "{wrong}");
            assert!(fabric.users.is_empty() && shared.lock().names.is_empty(), "{wrong}");
        }
        for (wrong, value) in [("user-friendly-name", "x".repeat(129)), ("enabled-state", "7".to_owned())] {
            let mut leaves = vec![Element::text("name", "0/1"), Element::text("user-friendly-name", "array")];
            leaves.extend([Element::number("enabled-state", 6_u32), Element::text(wrong, value)]);
            let entry = Element::entry("fibrechannel", leaves);
            let entries = [entry];
            let fault = with(&mut fabric, &shared, |room| ports::patch_ports(room, &entries).map(drop)).unwrap_err();
            assert_eq!(fault.status, 400, "{wrong}");
            assert!(fabric.users.is_empty() && shared.lock().names.is_empty(), "{wrong}");
        }
    }
}
