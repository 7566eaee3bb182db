//! Resources that the virtual links of one Ethernet port share: [`Station`].

use super::config::{Event, FcfConfig, Output};
use super::pending::{Pending, PendingRequests};
use super::pool::PortPool;
use crate::alarms::Alarms;
use crate::fabric_switch;
use crate::fip::{BindingChange, Discard, Discards};
use sanloom_scsi::time::Instant;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation, flag};
use sanloom_wire::{FcId, Frame};
use std::collections::VecDeque;

/// Timers of an FCF.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Timer {
    Advertise,
    /// The keep-alive of the ENode behind a port is overdue.
    Enode(u16),
    VnPort(FcId),
    /// The advertisement of another FCF is overdue.
    Neighbour(MacAddr),
    /// Requests pending at the switch have expired.
    Pending,
}

/// Settings, switch ports, pending requests, timers and the output queue of an FCF. The tables of
/// ENodes and neighbours send through it and do not refer to each other.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) config: FcfConfig,
    pub(super) ports: PortPool,
    /// Requests received over FIP whose replies are sent over FIP.
    pub(super) pending: PendingRequests,
    pub(super) alarms: Alarms<Timer>,
    pub(super) discards: Discards,
    outputs: VecDeque<Output>,
}

impl Station {
    pub(super) fn new(config: FcfConfig) -> Station {
        Station {
            ports: PortPool::new(&config.ports),
            pending: PendingRequests::default(),
            alarms: Alarms::new(),
            discards: Discards::default(),
            outputs: VecDeque::new(),
            config,
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Memory that grows with the traffic of stations, in bytes.
    pub(super) fn table_bytes(&self) -> usize {
        self.pending.table_bytes() + self.outputs.capacity() * size_of::<Output>()
    }

    /// Drops all pending requests and timers.
    pub(super) fn reset(&mut self) {
        self.pending.clear();
        self.alarms = Alarms::new();
    }

    /// Fabric-provided MAC address of an N_Port_ID.
    pub(super) fn fpma(&self, id: FcId) -> MacAddr {
        MacAddr::fpma(self.config.fc_map, id)
    }

    /// FIP frame of this FCF.
    pub(super) fn fip_frame(&self, to: MacAddr, padded_bytes: u16, packet: Fip) -> FipFrame {
        FipFrame { to, from: self.config.mac, padded_bytes, packet }
    }

    /// Reply to a link service. `granted` is the granted address; a reject has none.
    pub(super) fn link_service_reply(
        &self,
        service: LinkService,
        to: MacAddr,
        frame: Frame,
        granted: Option<MacAddr>,
    ) -> FipFrame {
        let link_service = Descriptor::LinkService { service, frame: Box::new(frame) };
        let descriptors = [link_service].into_iter().chain(granted.map(Descriptor::Mac)).collect();
        let packet = Fip { operation: Operation::LINK_SERVICE_REPLY, flags: flag::FPMA | flag::FCF, descriptors };
        self.fip_frame(to, 0, packet)
    }

    pub(super) fn send_fip(&mut self, frame: FipFrame) {
        self.outputs.push_back(Output::Fip(frame));
    }

    pub(super) fn send_fcoe(&mut self, to: MacAddr, frame: Frame) {
        self.outputs.push_back(Output::Fcoe { to, frame });
    }

    /// Sends Clear Virtual Links to a station for the VN_Ports in `ports`; an empty list means all
    /// of them.
    pub(super) fn send_clear(&mut self, to: MacAddr, ports: impl IntoIterator<Item = Descriptor>) {
        let own = [Descriptor::Mac(self.config.mac), Descriptor::Name(self.config.switch_name)];
        let descriptors = own.into_iter().chain(ports).collect();
        let packet = Fip { operation: Operation::CLEAR_VIRTUAL_LINKS, flags: flag::FPMA | flag::FCF, descriptors };
        self.send_fip(self.fip_frame(to, 0, packet));
    }

    /// Passes an input to the switch.
    pub(super) fn input_switch(&mut self, input: fabric_switch::Input) {
        self.outputs.push_back(Output::Switch(input));
    }

    pub(super) fn bind(&mut self, change: BindingChange) {
        self.outputs.push_back(Output::Bind(change));
    }

    pub(super) fn report(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Stores a request until the switch replies or twice R_A_TOV has passed.
    pub(super) fn await_reply(&mut self, now: Instant, port: u16, ox_id: u16, pending: Pending) -> Result<(), Discard> {
        let until = now + self.config.r_a_tov.times(2);
        if self.pending.insert(until, port, ox_id, pending)? {
            self.alarms.set_earlier(Timer::Pending, until);
        }
        Ok(())
    }

    /// Drops expired requests.
    pub(super) fn expire_pending(&mut self, now: Instant) {
        if let Some(until) = self.pending.expire(now) {
            self.alarms.set(Timer::Pending, until);
        }
    }

    /// Returns the switch port of a station to the pool and drops its pending requests.
    pub(super) fn release_port(&mut self, port: u16, mac: MacAddr) {
        self.pending.remove_port(port);
        self.ports.give_back(port, mac);
    }
}
