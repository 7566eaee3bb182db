//! Access of one request to the fabric: [`Room`].

use super::fault::Fault;
use super::settings::{Mode, Shared};
use crate::Fabric;
use crate::server::users::Role;
use crate::server::{Now, Peer};
use sanloom_api::control::{Answer, ErrorKind, Request, RequestError, RequestUser, ShowTable, ZoneAction, ZoneClient};
use sanloom_api::view::build::Which;
use sanloom_api::view::{
    EventsView, FabricView, FdmiView, FlogiView, NsView, PortsView, RoutesView, SwitchRow, SwitchView, Table, View,
};
use sanloom_api::zoning::ZoneStatus;
use std::net::IpAddr;

/// Sender of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Who {
    /// Identifier of the session. It is no secret.
    pub session: String,
    /// Name of the user.
    pub user: String,
    /// Role of the user.
    pub role: Role,
    /// Address of the client.
    pub address: String,
    /// Program of the client.
    pub application: String,
}

/// Access of one request to the fabric, and the settings of its switch.
pub struct Room<'a> {
    fabric: &'a mut dyn Fabric,
    /// Name of the switch in the lab.
    pub switch: String,
    /// Settings of the switch.
    pub shared: Shared,
    /// Behaviour of the interface.
    pub mode: Mode,
    /// Time of the request.
    pub now: Now,
    /// Sender of the request.
    pub who: Who,
    /// Address of the switch at which the client connected.
    pub address: IpAddr,
    /// Interface of the client, as other clients see it.
    pub interface: &'static str,
    switches: Option<Vec<SwitchRow>>,
    /// Time since the start of the fabric in seconds, from the last table.
    pub uptime_s: f64,
}

/// Reads the table of this kind from an answer.
macro_rules! table {
    ($answer:expr, $kind:ident) => {
        match $answer {
            Table::$kind(table) => Ok(table),
            _ => Err(Fault::failed("the fabric has answered with another table")),
        }
    };
}

impl<'a> Room<'a> {
    /// Starts a request to a switch.
    pub fn new(
        fabric: &'a mut dyn Fabric,
        switch: &str,
        shared: &Shared,
        mode: Mode,
        now: Now,
        who: Who,
        peer: &Peer,
    ) -> Room<'a> {
        let switch = switch.to_owned();
        let (address, shared) = (peer.local.ip(), shared.clone());
        let interface = "REST";
        Room { fabric, switch, shared, mode, now, who, address, interface, switches: None, uptime_s: 0.0 }
    }

    /// Selects a logical switch of the chassis. A switch without virtual fabrics ignores the
    /// number.
    ///
    /// # Errors
    /// The chassis has no logical switch with this number.
    pub fn select(&mut self, id: Option<u32>) -> Result<(), Fault> {
        let Some(id) = id else { return Ok(()) };
        let own = self.own()?;
        if own.chassis.is_none() || own.vf_id.map(u32::from) == Some(id) {
            return Ok(());
        }
        let same = |row: &&SwitchRow| row.chassis == own.chassis && row.vf_id.map(u32::from) == Some(id);
        match self.switches()?.iter().find(same) {
            Some(row) => self.enter(&row.switch.clone()),
            // Clients that know no virtual fabrics name the default one.
            None if id == 128 => {}
            None => {
                return Err(Fault::failed(format!("the chassis has no logical switch with the fabric ID {id}")));
            }
        }
        Ok(())
    }

    /// Directs the request to a switch of the same chassis, with the settings of that switch.
    pub fn enter(&mut self, switch: &str) {
        if self.switch != switch {
            self.shared = self.shared.of(switch);
            switch.clone_into(&mut self.switch);
        }
    }

    /// Sends a request to the fabric.
    ///
    /// # Errors
    /// The fabric is busy, or refuses the request.
    pub fn ask(&mut self, request: Request) -> Result<Answer, Fault> {
        match self.fabric.ask(request) {
            Err(_) => Err(Fault::unavailable()),
            Ok(Answer::Failed(RequestError { reason, kind: ErrorKind::Transaction })) => {
                Err(Fault::outstanding(reason))
            }
            Ok(Answer::Failed(error)) => Err(Fault::failed(error.reason)),
            Ok(answer) => Ok(answer),
        }
    }

    fn show(&mut self, table: ShowTable, own: bool) -> Result<Table, Fault> {
        let switch = own.then(|| self.switch.clone());
        match self.ask(Request::Show { table, switch })? {
            Answer::View(View { table, at_s, .. }) => {
                self.uptime_s = at_s;
                Ok(table)
            }
            _ => Err(Fault::failed("the fabric has answered without a table")),
        }
    }

    fn rows(&mut self) -> Result<&[SwitchRow], Fault> {
        if self.switches.is_none() {
            let SwitchView { switches } = table!(self.show(ShowTable::Fabric(Which::Switch), false)?, Switch)?;
            self.switches = Some(switches);
        }
        Ok(self.switches.as_deref().unwrap_or_default())
    }

    /// All switches of the instance.
    pub fn switches(&mut self) -> Result<Vec<SwitchRow>, Fault> {
        self.rows().map(<[SwitchRow]>::to_vec)
    }

    /// Drops the table of switches, after a change of one of them.
    pub fn forget(&mut self) {
        self.switches = None;
    }

    /// The switch itself.
    pub fn own(&mut self) -> Result<SwitchRow, Fault> {
        let name = self.switch.clone();
        let found = self.rows()?.iter().find(|row| row.switch == name).cloned();
        found.ok_or_else(|| Fault::failed("Chassis is not ready for management"))
    }

    /// Ports of the switch.
    pub fn ports(&mut self) -> Result<PortsView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Ports), true)?, Ports)
    }

    /// Ports of all switches of the instance.
    pub fn all_ports(&mut self) -> Result<PortsView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Ports), false)?, Ports)
    }

    /// Logins at the switch.
    pub fn logins(&mut self) -> Result<FlogiView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Flogi), true)?, Flogi)
    }

    /// Name server of the switch.
    pub fn names(&mut self) -> Result<NsView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Ns), true)?, Ns)
    }

    /// Adapters that have registered with any switch of the instance.
    pub fn adapters(&mut self) -> Result<FdmiView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Fdmi), false)?, Fdmi)
    }

    /// Domains and ISLs of all switches of the instance.
    pub fn fabrics(&mut self) -> Result<FabricView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Fabric), false)?, Fabric)
    }

    /// Event log of the switch.
    pub fn events(&mut self) -> Result<EventsView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Events), true)?, Events)
    }

    /// The sender for the event log.
    pub fn user(&self) -> RequestUser {
        RequestUser { user: self.who.user.clone(), interface: self.interface.to_owned() }
    }

    /// Paths from the switch.
    pub fn routes(&mut self) -> Result<RoutesView, Fault> {
        table!(self.show(ShowTable::Fabric(Which::Routes), true)?, Routes)
    }

    /// Zone request of the client.
    ///
    /// # Errors
    /// The fabric is busy, or refuses the request.
    pub fn zone(&mut self, checksum: Option<String>, action: ZoneAction) -> Result<ZoneStatus, Fault> {
        let client = ZoneClient {
            session: self.who.session.clone(),
            user: self.who.user.clone(),
            role: self.who.role.word().to_owned(),
            address: self.who.address.clone(),
            interface: self.interface.to_owned(),
            application: self.who.application.clone(),
            timeout_s: Some(self.shared.lock().lock_timeout_s),
        };
        let action = ZoneAction::As { client, checksum, action: Box::new(action) };
        match self.ask(Request::Zone { switch: Some(self.switch.clone()), by: None, action })? {
            Answer::Zones(status) => Ok(*status),
            _ => Err(Fault::failed("the fabric has answered without zones")),
        }
    }

    /// Zones of the switch. It does not renew a transaction.
    pub fn zone_status(&mut self) -> Result<ZoneStatus, Fault> {
        match self.ask(Request::Zone { switch: Some(self.switch.clone()), by: None, action: ZoneAction::Show })? {
            Answer::Zones(status) => Ok(*status),
            _ => Err(Fault::failed("the fabric has answered without zones")),
        }
    }

    /// True if the client owns the open transaction.
    pub fn owns_transaction(&mut self) -> bool {
        let session = self.who.session.clone();
        let owner = |status: ZoneStatus| status.transaction.and_then(|open| open.owner);
        self.zone_status().ok().and_then(owner).is_some_and(|owner| owner.session == session)
    }

    /// Name of the switch for people: the one that a client has given, or that of the lab.
    pub fn friendly_name(&self) -> String {
        self.shared.name("switch").unwrap_or_else(|| self.switch.clone())
    }

    /// Name of the chassis of a switch for people: the one that a client has given, or that of the
    /// lab.
    pub fn chassis_name(&mut self, of: &SwitchRow) -> Result<String, Fault> {
        let own = self.own()?;
        let in_lab = of.chassis.as_ref().unwrap_or(&of.switch);
        let given = match in_lab == own.chassis.as_ref().unwrap_or(&own.switch) {
            true => self.shared.chassis().name.clone(),
            false => self.shared.chassis_name(in_lab),
        };
        Ok(given.unwrap_or_else(|| in_lab.clone()))
    }

    /// World-wide name of the chassis of a switch: the lowest one of its logical switches in the
    /// instance, so all of them agree.
    pub fn chassis_wwn(&mut self, of: &SwitchRow) -> Result<String, Fault> {
        let same = |row: &SwitchRow| of.chassis.is_some() && row.chassis == of.chassis;
        let names = self.rows()?.iter().filter(|row| same(row)).map(|row| &row.switch_name);
        Ok(names.min().unwrap_or(&of.switch_name).clone())
    }
}
