//! The adapters of a storage system: buses and interrupts (the SANSim paper, section 2.4: the
//! interface module of a target is that of a host).
//!
//! Each data frame occupies the bus before it leaves, and after it has arrived. Messages of a port
//! leave in order, so a response waits for the data before it. A command, and any other message of
//! an initiator, reaches the target when the processor has handled its interrupt. [`others`] has
//! the ports of iSCSI and SRP, which use the same buses and the same processor.

mod others;

pub(super) use others::interfaces_of;

use super::target::Storage;
use crate::host::{Bus, Cpu, Direction, Interface, Interrupts, RaisedInterrupt};
use crate::net::{FrameRef, NEVER, Net};
use sanloom_fc::config::{self, Node};
use sanloom_fc::exchange::SeqTx;
use sanloom_fc::san::Lab;
use sanloom_wire::{FCtl, FcId, FcType, Frame};
use std::collections::{BTreeMap, VecDeque};

/// The adapters of one storage system, one for each port.
pub struct Adapters {
    bus_config: Option<config::Bus>,
    /// Number of the first port of SRP.
    first_srp: u16,
    /// Buses, each shared by successive ports.
    buses: Vec<Bus>,
    /// Processor that handles interrupts.
    cpu: Cpu,
    interrupt_config: Option<config::Interrupt>,
    ports: Vec<Adapter>,
    /// Interrupts of the interfaces of iSCSI and SRP.
    others: BTreeMap<Interface, Interrupts>,
}

/// State of one port.
struct Adapter {
    /// Frames and messages that leave, with the times at which the bus has moved them.
    leaving: VecDeque<(u64, Leaving)>,
    /// Data frames that have arrived, with the times at which the bus has moved them. Each holds a
    /// receive buffer.
    arriving: VecDeque<(u64, FrameRef)>,
    interrupts: Interrupts,
    /// Messages whose interrupt has not been handled; `None` for a discarded one.
    messages: VecDeque<Option<Frame>>,
    /// Interrupts that the processor handles: time, and number of messages.
    handled: VecDeque<(u64, u32)>,
}

/// Data frame or message that leaves.
enum Leaving {
    Data(FrameRef),
    Message(Frame),
}

/// Work of an adapter that is done, with the port.
enum Done {
    Left(u16, Leaving),
    Arrived(u16, FrameRef),
    /// A message reaches the target.
    Message(u16, Frame),
    /// The processor was interrupted; the messages follow.
    Interrupted,
}

impl Adapters {
    /// Returns the adapters of a storage system with this number of portals, or `None` if they take
    /// no time.
    pub fn new(lab: &Lab, storage: u16, portals: u16) -> Option<Box<Adapters>> {
        let config = &lab.storage[usize::from(storage)];
        if config.bus.is_none() && config.interrupt.is_none() {
            return None;
        }
        let ports = config.ports.len();
        let port = |number: usize| Adapter {
            leaving: VecDeque::new(),
            arriving: VecDeque::new(),
            interrupts: Interrupts::new(config.interrupt, number as u16),
            messages: VecDeque::new(),
            handled: VecDeque::new(),
        };
        Some(Box::new(Adapters {
            bus_config: config.bus,
            first_srp: ports as u16 + portals,
            buses: Bus::of_node(config.bus.as_ref(), interfaces_of(lab, Node::Storage(storage)).max(ports as u16)),
            cpu: Cpu::default(),
            interrupt_config: config.interrupt,
            ports: (0..ports).map(port).collect(),
            others: BTreeMap::new(),
        }))
    }

    /// Returns the busy share of the busiest bus since the start of the measurement, 0 to 1.
    pub fn bus_utilisation(&self, now_ps: u64) -> f64 {
        self.buses.iter().map(|bus| bus.utilisation(now_ps)).fold(0.0, f64::max).min(1.0)
    }

    /// Returns the busy share of the processor since the start of the measurement, 0 to 1.
    pub fn cpu_utilisation(&self, now_ps: u64) -> f64 {
        self.cpu.utilisation(now_ps).min(1.0)
    }

    /// Returns the number of interrupts since the start of the measurement.
    pub fn interrupts(&self) -> u64 {
        let of_ports = self.ports.iter().map(|port| &port.interrupts);
        of_ports.chain(self.others.values()).map(Interrupts::raised).sum()
    }

    /// Restarts the measurement.
    pub fn restart(&mut self, now_ps: u64) {
        self.buses.iter_mut().for_each(|bus| bus.restart(now_ps));
        self.cpu.restart(now_ps);
        self.ports.iter_mut().for_each(|port| port.interrupts.restart());
        self.others.values_mut().for_each(Interrupts::restart);
    }

    /// Reserves the bus of a port. Returns the end of the transfer, or `None` without a bus.
    fn occupy(&mut self, now_ps: u64, port: u16, direction: Direction, bytes: u16) -> Option<u64> {
        let index = Bus::index_of(self.bus_config.as_ref()?, port);
        Some(self.buses.get_mut(usize::from(index))?.occupy(now_ps, direction, u64::from(bytes)))
    }

    /// Puts the frames of a sequence on the bus. Returns the sequence if there is no bus.
    fn transmit(&mut self, now_ps: u64, port: u16, mut seq: SeqTx) -> Option<SeqTx> {
        if self.bus_config.is_none() {
            return Some(seq);
        }
        while let Some(frame) = seq.next_frame() {
            let done_ps = self.occupy(now_ps, port, Direction::Send, frame.len).unwrap_or(now_ps);
            let leaving = Leaving::Data(FrameRef::data(&seq, &frame));
            self.ports[usize::from(port)].leaving.push_back((done_ps, leaving));
        }
        None
    }

    /// Queues a message behind the data of its port. Returns it if it may leave at once.
    fn send(&mut self, port: u16, frame: Frame) -> Option<Frame> {
        let leaving = &mut self.ports[usize::from(port)].leaving;
        let Some(&(done_ps, _)) = leaving.back() else { return Some(frame) };
        leaving.push_back((done_ps, Leaving::Message(frame)));
        None
    }

    /// Queues a message until its interrupt has been handled.
    fn interrupt(&mut self, now_ps: u64, port: u16, frame: Frame) {
        let adapter = &mut self.ports[usize::from(port)];
        adapter.messages.push_back(Some(frame));
        let raised = adapter.interrupts.complete(now_ps, 0, &mut self.cpu);
        adapter.raised(raised);
    }

    /// Discards the unsent answers to a remote port, of one exchange or, with `None`, of all.
    fn discard_answers(&mut self, port: u16, to: FcId, ox_id: Option<u16>) {
        let matches = |d_id: FcId, of: u16| d_id == to && ox_id.is_none_or(|ox_id| ox_id == of);
        self.ports[usize::from(port)].leaving.retain(|(_, leaving)| match leaving {
            Leaving::Data(frame) => !matches(frame.d_id(), frame.ox_id()),
            Leaving::Message(Frame { header, .. }) => {
                let is_answer = header.fc_type == FcType::FCP && header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
                !(is_answer && matches(header.d_id, header.ox_id))
            }
        });
    }

    /// Discards the unsent data of an exchange.
    fn discard_exchange(&mut self, port: u16, rx_id: u16) {
        self.ports[usize::from(port)]
            .leaving
            .retain(|(_, leaving)| !matches!(leaving, Leaving::Data(frame) if frame.rx_id() == rx_id));
    }

    /// Returns the time of the next event.
    fn next_ps(&self) -> u64 {
        self.ports.iter().map(Adapter::next_ps).min().unwrap_or(NEVER)
    }

    /// Removes and returns work that is done by `now_ps`, port by port.
    fn pop(&mut self, now_ps: u64) -> Option<Done> {
        let at = self.ports.iter().position(|port| port.next_ps() <= now_ps)?;
        let (adapter, port) = (&mut self.ports[at], at as u16);
        let is_due = |time: Option<u64>| time.is_some_and(|time| time <= now_ps);
        if is_due(adapter.arriving.front().map(|arriving| arriving.0)) {
            return adapter.arriving.pop_front().map(|(_, frame)| Done::Arrived(port, frame));
        }
        if is_due(adapter.leaving.front().map(|leaving| leaving.0)) {
            return adapter.leaving.pop_front().map(|(_, leaving)| Done::Left(port, leaving));
        }
        if let Some((_, count)) = adapter.handled.front_mut().filter(|(time, _)| *time <= now_ps) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                adapter.handled.pop_front();
            }
            let message = adapter.messages.pop_front().flatten();
            return Some(message.map_or(Done::Interrupted, |frame| Done::Message(port, frame)));
        }
        let raised = adapter.interrupts.timeout(now_ps, &mut self.cpu);
        adapter.raised(raised);
        Some(Done::Interrupted)
    }
}

impl Adapter {
    fn raised(&mut self, raised: Option<RaisedInterrupt>) {
        self.handled.extend(raised.map(|raised| (raised.handled_ps, raised.completions)));
    }

    fn next_ps(&self) -> u64 {
        let times = [
            self.leaving.front().map(|leaving| leaving.0),
            self.arriving.front().map(|arriving| arriving.0),
            self.handled.front().map(|handled| handled.0),
            self.interrupts.poll_timeout(),
        ];
        times.into_iter().flatten().min().unwrap_or(NEVER)
    }
}

/// Returns the adapters of a port of a storage system, with the number of the system and that of
/// the port.
fn of(storage: &mut Storage, nport: u16) -> Option<(u16, u16, &mut Adapters)> {
    let number = storage.system_of(nport)?;
    let system = &mut storage.systems[usize::from(number)];
    let port = system.nports.iter().position(|own| *own == nport)? as u16;
    Some((number, port, system.adapters.as_deref_mut()?))
}

/// Sends a message of a target.
#[inline]
pub(super) fn send(storage: &mut Storage, net: &mut Net, (number, nport): (u16, u16), frame: Frame) {
    match storage.systems[usize::from(number)].adapters {
        None => net.send_message(nport, frame),
        Some(_) => send_late(storage, net, nport, frame),
    }
}

#[inline(never)]
fn send_late(storage: &mut Storage, net: &mut Net, nport: u16, frame: Frame) {
    let Some((_, port, adapters)) = of(storage, nport) else { return };
    if let Some(frame) = adapters.send(port, frame) {
        net.send_message(nport, frame);
    }
}

/// Sends data of a target.
#[inline]
pub(super) fn transmit(storage: &mut Storage, net: &mut Net, (number, nport): (u16, u16), seq: SeqTx) {
    match storage.systems[usize::from(number)].adapters {
        None => net.send_data(nport, seq),
        Some(_) => transmit_late(storage, net, nport, seq),
    }
}

#[inline(never)]
fn transmit_late(storage: &mut Storage, net: &mut Net, nport: u16, seq: SeqTx) {
    let now_ps = net.now();
    let Some((number, port, adapters)) = of(storage, nport) else { return };
    match adapters.transmit(now_ps, port, seq) {
        Some(seq) => net.send_data(nport, seq),
        None => storage.arm_controller(net, number),
    }
}

/// Moves a received data frame over the bus. The frame keeps its receive buffer until then. Returns
/// false, without effect, if the port has no bus.
#[inline(never)]
pub(super) fn receive(storage: &mut Storage, net: &mut Net, nport: u16, frame: FrameRef) -> bool {
    let now_ps = net.now();
    let Some((number, port, adapters)) = of(storage, nport) else { return false };
    let Some(done_ps) = adapters.occupy(now_ps, port, Direction::Receive, frame.len_bytes()) else { return false };
    adapters.ports[usize::from(port)].arriving.push_back((done_ps, frame));
    storage.arm_controller(net, number);
    true
}

/// Handles a message for a target, after its interrupt if the port has interrupts.
#[inline(never)]
pub(super) fn accept_message(storage: &mut Storage, net: &mut Net, nport: u16, frame: Frame) {
    let now_ps = net.now();
    match of(storage, nport) {
        Some((number, port, adapters)) if adapters.interrupt_config.is_some() => {
            adapters.interrupt(now_ps, port, frame);
            storage.arm_controller(net, number);
        }
        _ => storage.receive_message(net, nport, frame),
    }
}

/// Discards the unsent answers to a remote port, of one exchange or, with `None`, of all.
pub(super) fn discard_answers(storage: &mut Storage, nport: u16, to: FcId, ox_id: Option<u16>) {
    if let Some((_, port, adapters)) = of(storage, nport) {
        adapters.discard_answers(port, to, ox_id);
    }
}

/// Discards the unsent data of an exchange.
pub(super) fn discard_exchange(storage: &mut Storage, nport: u16, rx_id: u16) {
    if let Some((_, port, adapters)) = of(storage, nport) {
        adapters.discard_exchange(port, rx_id);
    }
}

/// Discards the unsent answers to a remote port, and its messages that the target has not received,
/// because the login has ended.
pub(super) fn remote_down(storage: &mut Storage, nport: u16, port_id: FcId) {
    discard_answers(storage, nport, port_id, None);
    if let Some((_, port, adapters)) = of(storage, nport) {
        for message in &mut adapters.ports[usize::from(port)].messages {
            message.take_if(|frame| frame.header.s_id == port_id);
        }
    }
}

/// Sets the timer of a system to the next event of its adapters, if that is earlier.
#[inline(never)]
pub(super) fn arm(storage: &Storage, net: &mut Net, first_timer: u32, number: u16) {
    if let Some(adapters) = storage.systems[usize::from(number)].adapters.as_deref() {
        net.set_timer_earlier(first_timer + u32::from(number), adapters.next_ps());
    }
}

/// Does the work of a system's adapters that is due.
#[inline(never)]
pub(super) fn run(storage: &mut Storage, net: &mut Net, number: u16) {
    let now_ps = net.now();
    loop {
        let system = &mut storage.systems[usize::from(number)];
        let Some(done) = system.adapters.as_deref_mut().and_then(|adapters| adapters.pop(now_ps)) else { return };
        let nport = |port: u16| system.nports[usize::from(port)];
        match done {
            Done::Left(port, Leaving::Data(frame)) => net.send_frame(nport(port), frame),
            Done::Left(port, Leaving::Message(frame)) => net.send_message(nport(port), frame),
            Done::Arrived(port, frame) => {
                let nport = nport(port);
                net.release(nport, now_ps);
                storage.accept_data(net, nport, &frame);
            }
            Done::Message(port, frame) => {
                let nport = nport(port);
                storage.receive_message(net, nport, frame);
            }
            Done::Interrupted => {}
        }
    }
}
