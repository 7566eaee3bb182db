//! Test bed with a host, a switch and its back ends. Each direction has a queue of PDUs, and a
//! random generator chooses the next event.

mod aside;
mod jobs;

use crate::forward::check::Wire;
use crate::forward::disk::{BLOCK, Disk, perform_mapped};
use crate::forward::served::{Drained, Pdu, Served};
use crate::forward::streams::Streams;
use jobs::Jobs;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::mover::{Outlet, Output, RunContext, Stop};
use sanloom_scsi::iscsi::forward::{Action, BackUnit, CloseReason, Conn, Counters, Forward, Settings, Switch};
use sanloom_scsi::iscsi::initiator::{self, Command, Outcome, SessionConfig};
use sanloom_scsi::iscsi::target::Input;
use sanloom_scsi::map::{LunConfig, LunId, Map, PoolConfig, PoolId, Shape, VolumeId};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::scsi::{IoStatus, IoTag};
use sanloom_scsi::time::{Instant, Span};
use sanloom_scsi::volume::Volumes;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::{BHS_BYTES, Head, Header};
use std::collections::{BTreeMap, VecDeque};

/// Configuration between the host and the media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setup {
    /// One disk of the size of the volume.
    Plain,
    /// A volume on the conventional path: every command passes the device and becomes a job of the
    /// volume.
    Conventional,
    /// A volume with READ and WRITE forwarded to targets.
    Forwarding,
}

/// Layout of the volume on its LUNs, and the agreed parameters.
#[derive(Clone, Debug)]
pub struct Shapes {
    pub luns: u16,
    pub extent_blocks: u64,
    pub shape: Shape,
    pub blocks: u64,
    pub front: Parameters,
    pub back: Parameters,
    pub depth: u16,
    /// Bad blocks of the volume.
    pub bad: Vec<u64>,
    pub settings: Settings,
    /// True if the forwarding path reads bytes as they arrive instead of whole PDUs.
    pub cut_through: bool,
}

pub struct Bed {
    pub setup: Setup,
    pub now: Instant,
    chance: SplitMix64,
    host: initiator::Session,
    pub buffers: BTreeMap<u64, Vec<u8>>,
    pub done: Vec<(u64, Outcome)>,
    /// Headers that the host has received.
    pub received: Vec<Head>,
    /// Number of the host's next command, and number of functions sent outside of its session.
    cmd_sn: u32,
    functions: u64,
    wire: Wire,
    front: Served,
    pub forward: Forward,
    pub volumes: Volumes,
    pub disks: Vec<Option<VolumeId>>,
    /// Block I/O of the conventional path.
    jobs: Jobs,
    backs: Vec<Option<Served>>,
    pub media: Vec<Disk>,
    to_switch: VecDeque<Pdu>,
    to_host: VecDeque<Pdu>,
    to_back: Vec<VecDeque<Pdu>>,
    from_back: Vec<VecDeque<Pdu>>,
    back_parameters: Parameters,
    depth: u16,
    lun_blocks: u64,
    actions: Vec<Action>,
    /// True if back ends send PDUs of the test's choice.
    noisy: bool,
    /// Byte streams, if the switch reads bytes instead of PDUs.
    pub streams: Option<Streams>,
    /// Connections that the switch has requested to close.
    pub closed: Vec<(Conn, CloseReason)>,
}

const POOL: PoolId = PoolId(0);

fn mirrored(parameters: Parameters) -> Parameters {
    let Parameters { send_bytes, receive_bytes, .. } = parameters;
    Parameters { send_bytes: receive_bytes, receive_bytes: send_bytes, ..parameters }
}

/// Result of an initiator's login with a side that agreed to these parameters.
fn established(parameters: Parameters, depth: u16) -> initiator::Established {
    initiator::Established {
        tsih: 1,
        parameters: mirrored(parameters),
        cmd_sn: 1,
        max_cmd_sn: depth.into(),
        exp_stat_sn: 1,
        portal_group: None,
    }
}

impl Bed {
    pub fn new(setup: Setup, shapes: &Shapes, seed: u64) -> Bed {
        let luns = if setup == Setup::Plain { 1 } else { shapes.luns };
        let pool = PoolConfig { name: "pool".into(), block_bytes: BLOCK as u32, extent_blocks: shapes.extent_blocks };
        let lun = |number| LunConfig { name: format!("lun{number}").into(), pool: POOL };
        let mut map = Map::new(vec![pool], (0..luns).map(lun).collect());
        let each = shapes.blocks.div_ceil(if setup == Setup::Plain { 1 } else { 2 });
        let lun_blocks = each.next_multiple_of(shapes.extent_blocks) + shapes.extent_blocks;
        for lun in 0..luns {
            assert!(map.reached(LunId(lun), lun_blocks));
        }
        let shape = if setup == Setup::Plain { Shape::Linear } else { shapes.shape };
        let change = map.plan_create("volume", POOL, shape, shapes.blocks).expect("room");
        map.apply(change);
        let volume = map.find("volume").unwrap();
        let mut media: Vec<Disk> = (0..luns).map(|_| Disk::new(lun_blocks)).collect();
        let epoch = map.epoch(volume).unwrap();
        for bad in &shapes.bad {
            let place = map.resolve(epoch, *bad, 1).unwrap().next().unwrap().place;
            media[usize::from(place.lun.0)].bad.insert(place.lba);
        }
        let config = SessionConfig { ping: Span::from_secs(1 << 20), ..SessionConfig::default() };
        let host = initiator::Session::new(Instant::ZERO, established(shapes.front, shapes.depth), config);
        let forwarding = setup == Setup::Forwarding;
        let mut bed = Bed {
            setup,
            now: Instant::ZERO,
            chance: SplitMix64(seed),
            host,
            buffers: BTreeMap::new(),
            done: Vec::new(),
            received: Vec::new(),
            cmd_sn: 1,
            functions: 0,
            wire: Wire::new(mirrored(shapes.front)),
            front: Served::new(shapes.front, shapes.depth, shapes.blocks),
            forward: Forward::new(shapes.settings, shapes.front),
            volumes: Volumes::new(map),
            disks: vec![Some(volume)],
            jobs: Jobs::default(),
            backs: (0..luns).map(|_| None).collect(),
            media,
            to_switch: VecDeque::new(),
            to_host: VecDeque::new(),
            to_back: vec![VecDeque::new(); usize::from(luns)],
            from_back: vec![VecDeque::new(); usize::from(luns)],
            back_parameters: shapes.back,
            depth: 1.max(shapes.depth / 2),
            lun_blocks,
            actions: Vec::new(),
            noisy: false,
            streams: None,
            closed: Vec::new(),
        };
        if forwarding && shapes.cut_through {
            bed.streams = Some(Streams::new(shapes));
        }
        if forwarding {
            (0..luns as u8).for_each(|back| bed.connect(back));
        }
        bed
    }

    /// Connects a back end, for the first time or again.
    pub fn connect(&mut self, back: u8) {
        let number = usize::from(back);
        self.backs[number] = Some(Served::new(self.back_parameters, self.depth, self.lun_blocks));
        (self.to_back[number], self.from_back[number]) = (VecDeque::new(), VecDeque::new());
        let established = established(self.back_parameters, self.depth);
        let mut actions = Vec::new();
        let units = [BackUnit { id: LunId(back.into()), lun: [0; 8], cache: self.media[number].cache }];
        let fit = self.forward.connect(self.now, back, &established, &units, &mut self.volumes, &mut actions);
        assert!(fit.is_ok() || self.back_parameters.data_digest, "{fit:?}");
        if let Some(streams) = &mut self.streams {
            streams.connect(back, &self.back_parameters);
        }
        self.execute(&mut actions, &([0; BHS_BYTES], Vec::new()), None);
    }

    /// Kills a back end. PDUs that it had sent are lost.
    pub fn cut(&mut self, back: u8) {
        let number = usize::from(back);
        self.backs[number] = None;
        (self.to_back[number], self.from_back[number]) = (VecDeque::new(), VecDeque::new());
        if let Some(streams) = &mut self.streams {
            streams.cut(back);
        }
        let mut actions = std::mem::take(&mut self.actions);
        self.with_forward(|forward, now, switch| forward.disconnect(now, back, switch, &mut actions));
        self.execute(&mut actions, &([0; BHS_BYTES], Vec::new()), None);
        self.actions = actions;
        self.after_switch();
    }

    /// Makes back ends report a unit attention to all initiators.
    pub fn attend(&mut self) {
        self.lun_blocks += 1;
        for served in self.backs.iter_mut().flatten() {
            served.device.resize(0, self.lun_blocks);
        }
    }

    /// Sends a PDU in the name of a back end.
    pub fn back_sends(&mut self, back: u8, head: Head, data: &[u8]) {
        self.noisy = true;
        let head = Head { data_bytes: data.len() as u32, ..head };
        self.from_back[usize::from(back)].push_back((head.to_bytes(), data.to_vec()));
    }

    /// Removes and returns the next PDU to a back end, which never receives it.
    pub fn intercept(&mut self, back: u8) -> Option<Head> {
        let (header, _) = self.to_back[usize::from(back)].pop_front()?;
        Some(Head::parse(&header))
    }

    /// Delivers all PDUs of the host to the switch, and no others.
    pub fn host_alone(&mut self) {
        while let Some(pdu) = self.to_switch.pop_front() {
            self.deliver_to_switch(Conn::Host, pdu);
        }
    }

    /// Delivers all PDUs of a back end to the switch, and no others.
    pub fn back_alone(&mut self, back: u8) {
        while let Some(pdu) = self.from_back[usize::from(back)].pop_front() {
            self.deliver_to_switch(Conn::Back(back), pdu);
        }
    }

    /// Lets time pass for the forwarding path.
    pub fn forward_timeout(&mut self, span: Span) {
        self.now += span;
        let mut actions = Vec::new();
        self.forward.timeout(self.now, &mut actions);
        self.execute(&mut actions, &([0; BHS_BYTES], Vec::new()), None);
    }

    /// Changes the list of units of a back end.
    pub fn units(&mut self, back: u8, units: &[BackUnit]) {
        let mut actions = Vec::new();
        self.forward.update_units(back, units, &mut actions);
        self.execute(&mut actions, &([0; BHS_BYTES], Vec::new()), None);
    }

    pub fn counters(&self) -> Counters {
        *self.forward.counters()
    }

    pub fn submit(&mut self, id: u64, cdb: Cdb, direction: DataDirection, buffer: Vec<u8>) {
        let bytes = buffer.len() as u32;
        self.buffers.insert(id, buffer);
        let command = Command { id, lun: [0; 8], cdb: cdb.to_bytes(), direction, bytes };
        self.drive_host(initiator::Input::Submit(command));
    }

    pub fn reset(&mut self, id: u64) {
        self.drive_host(initiator::Input::Reset { id, lun: [0; 8] });
    }

    /// Lets time pass for the host, which aborts commands that take too long.
    pub fn wait(&mut self, span: Span) {
        self.now += span;
        self.drive_host(initiator::Input::Timeout);
    }

    fn drive_host(&mut self, input: initiator::Input) {
        self.host.handle(self.now, input);
        while let Some(output) = self.host.poll_output() {
            let (head, data) = match output {
                initiator::Output::Send { head, data } => (head, data.into()),
                initiator::Output::Data { id, head, at } => {
                    let data = self.buffers[&id][at as usize..(at + head.data_bytes) as usize].to_vec();
                    (head, data)
                }
                initiator::Output::Done { id, outcome } => {
                    self.done.push((id, outcome));
                    continue;
                }
                initiator::Output::Broken(why) => panic!("the host ends the session: {why}"),
            };
            if let Header::ScsiCommand(command) = head.header {
                self.cmd_sn = command.cmd_sn.wrapping_add(1);
            }
            self.wire.send(&head);
            self.to_switch.push_back((head.to_bytes(), data));
        }
    }

    fn deliver_to_host(&mut self, (header, data): &Pdu) {
        let head = Head::parse(header);
        assert_eq!(head.data_bytes as usize, data.len());
        self.wire.see(&head);
        self.received.push(head);
        self.drive_host(initiator::Input::Header(head));
        if data.is_empty() {
            return;
        }
        let input = match self.host.destination() {
            initiator::Destination::Text => initiator::Input::Text { data: data[..].into(), intact: true },
            initiator::Destination::Skip => initiator::Input::Segment { intact: true },
            initiator::Destination::Buffer { id, at } => {
                self.buffers.get_mut(&id).unwrap()[at as usize..at as usize + data.len()].copy_from_slice(data);
                initiator::Input::Segment { intact: true }
            }
        };
        self.drive_host(input);
    }

    fn with_forward<R>(&mut self, call: impl FnOnce(&mut Forward, Instant, &mut Switch<'_>) -> R) -> R {
        let Served { session, device, .. } = &mut self.front;
        let mut switch = Switch { session, device, volumes: &mut self.volumes, disks: &self.disks };
        call(&mut self.forward, self.now, &mut switch)
    }

    fn deliver_to_switch(&mut self, conn: Conn, pdu: Pdu) {
        if self.setup != Setup::Forwarding {
            self.front.receive(self.now, &pdu);
            return self.after_switch();
        }
        if let Some(streams) = &mut self.streams {
            return streams.arrive(conn, &pdu);
        }
        let mut actions = std::mem::take(&mut self.actions);
        let mut header = pdu.0;
        self.with_forward(|forward, now, switch| forward.on_header(now, conn, &mut header, switch, &mut actions));
        self.execute(&mut actions, &(header, pdu.1), Some(conn));
        self.actions = actions;
        self.after_switch();
    }

    fn queue(&mut self, to: Conn) -> &mut VecDeque<Pdu> {
        match to {
            Conn::Host => &mut self.to_host,
            Conn::Back(back) => &mut self.to_back[usize::from(back)],
        }
    }

    /// Outputs of the switch's own session; `None` while a PDU is half sent to the host.
    fn drain_front(&mut self) -> Option<Drained> {
        let Some(streams) = &mut self.streams else { return Some(self.front.drain(self.now, &mut self.to_host)) };
        if streams.mover.is_open(Conn::Host).is_some() {
            return None;
        }
        let mut out = VecDeque::new();
        let drained = self.front.drain(self.now, &mut out);
        out.iter().for_each(|pdu| streams.send(pdu));
        self.deliver();
        Some(drained)
    }

    /// Delivers complete PDUs to their receivers.
    fn deliver(&mut self) {
        let Some(streams) = &mut self.streams else { return };
        for (conn, pdu) in streams.take_complete() {
            self.queue(conn).push_back(pdu);
        }
    }

    /// Sends bytes that leave the switch.
    fn carry(&mut self, output: Output, input: &[u8]) {
        if let Some(streams) = &mut self.streams {
            streams.leave(Conn::Host, &output.to_host, input);
            for (back, pieces) in (0..).zip(&output.to_backs) {
                streams.leave(Conn::Back(back), pieces, input);
            }
        }
        self.closed.extend(output.closes);
        self.deliver();
    }

    /// Lets the switch read some bytes of a connection and process them as far as possible.
    fn switch_reads(&mut self, number: usize) {
        let Some(streams) = &mut self.streams else { return };
        let (conn, mut input) = streams.read(number, &mut self.chance);
        loop {
            let (mut at, mut output) = (0, Output::default());
            let Served { session, device, statuses, .. } = &mut self.front;
            let mut switch = Switch { session, device, volumes: &mut self.volumes, disks: &self.disks };
            let (now, forward) = (self.now, &mut self.forward);
            let outlet = Outlet { output: &mut output, statuses };
            let mut context = RunContext { now, forward, switch: &mut switch, outlet };
            let Some(streams) = &mut self.streams else { return };
            let stop = streams.mover.run(&mut context, conn, &mut input, &mut at);
            self.carry(output, &input);
            let Some(streams) = &mut self.streams else { return };
            if let Stop::Conventional(range) = &stop {
                for pdu in streams.conventional(&input[range.clone()]) {
                    self.front.receive(self.now, &pdu);
                }
            }
            input.drain(..at);
            self.after_switch();
            match stop {
                Stop::More | Stop::Blocked => break,
                Stop::HeaderDigest => return self.closed.push((conn, CloseReason::Protocol)),
                Stop::Conventional(_) | Stop::Session => {}
            }
        }
        if let Some(streams) = &mut self.streams {
            streams.put_back(number, input);
        }
    }

    /// Data Mover for whole PDUs.
    fn execute(&mut self, actions: &mut Vec<Action>, pdu: &Pdu, from: Option<Conn>) {
        if let Some(streams) = &mut self.streams {
            let mut output = Output::default();
            let statuses = &mut self.front.statuses;
            streams.mover.execute(actions, &mut Outlet { output: &mut output, statuses });
            return self.carry(output, &[]);
        }
        let (header, data) = pdu;
        let mut at = 0;
        while !actions.is_empty() {
            for action in std::mem::take(actions) {
                match action {
                    Action::SendHeader { to } => {
                        let header = if to == Conn::Host { self.front.number(*header) } else { *header };
                        self.queue(to).push_back((header, Vec::new()));
                    }
                    Action::Send { to, header } => {
                        let header = if to == Conn::Host { self.front.number(header) } else { header };
                        self.queue(to).push_back((header, Vec::new()));
                    }
                    Action::Move { to, bytes } => {
                        let end = at + bytes as usize;
                        let piece = data[at..end].to_vec();
                        self.queue(to).back_mut().unwrap().1.extend(piece);
                        at = end;
                    }
                    Action::Discard { bytes } => at += bytes as usize,
                    Action::Collect => {
                        let Some(Conn::Back(back)) = from else { panic!("data of the host to collect") };
                        at = data.len();
                        let mut more = Vec::new();
                        self.with_forward(|forward, _, switch| {
                            forward.on_collected(back, header, data, switch, &mut more);
                        });
                        actions.extend(more);
                    }
                    Action::ToConventional => {
                        at = data.len();
                        self.front.receive(self.now, pdu);
                    }
                    Action::Close { conn, reason } => self.closed.push((conn, reason)),
                }
            }
        }
        assert_eq!(at, data.len(), "all of a segment is used");
    }

    /// Executes the outputs of the switch's own session, and starts block I/O that may begin.
    fn after_switch(&mut self) {
        loop {
            let Some((ios, recalls, cancels)) = self.drain_front() else { return };
            self.jobs.forget(&cancels);
            let mut silent = ios.is_empty() && recalls.is_empty();
            for tag in recalls {
                let mut actions = Vec::new();
                self.with_forward(|forward, now, switch| forward.recall(now, tag, switch, &mut actions));
                self.execute(&mut actions, &([0; BHS_BYTES], Vec::new()), None);
            }
            match self.setup {
                Setup::Plain => self.front.ios.extend(ios),
                _ => ios.into_iter().for_each(|io| self.begin_job(io)),
            }
            silent &= !self.follow_jobs();
            if silent {
                return;
            }
        }
    }

    /// Completes block I/O of a plain disk.
    fn work(&mut self) {
        let io = self.front.ios.swap_remove(self.chance.index(self.front.ios.len()));
        let mut buffer = self.front.at_work.remove(&io.tag).unwrap_or_default();
        let map = self.volumes.map();
        let epoch = self.disks[0].and_then(|volume| map.epoch(volume)).unwrap();
        let status = match map.resolve(epoch, io.lba, io.blocks) {
            Some(pieces) => perform_mapped(&mut self.media, pieces, &io, &mut buffer),
            None => IoStatus::MediumError,
        };
        self.io_done(io.tag, status, buffer);
        self.after_switch();
    }

    /// Reports the end of block I/O to the switch's own session.
    fn io_done(&mut self, tag: IoTag, status: IoStatus, buffer: Vec<u8>) {
        self.front.buffers.insert(tag, buffer);
        let Served { session, device, .. } = &mut self.front;
        session.handle(self.now, Input::IoDone { tag, status }, Some(device));
    }

    fn back_works(&mut self, number: usize) {
        let Some(served) = self.backs[number].as_mut() else { return };
        let io = served.ios.swap_remove(self.chance.index(served.ios.len()));
        let mut buffer = served.at_work.remove(&io.tag).unwrap_or_default();
        let status = self.media[number].perform(&io, &mut buffer);
        served.buffers.insert(io.tag, buffer);
        served.session.handle(self.now, Input::IoDone { tag: io.tag, status }, Some(&mut served.device));
        self.after_back(number);
    }

    fn after_back(&mut self, number: usize) {
        let Some(served) = self.backs[number].as_mut() else { return };
        let (ios, recalls, _) = served.drain(self.now, &mut self.from_back[number]);
        assert!(recalls.is_empty());
        served.ios.extend(ios);
        if self.noisy {
            return;
        }
        assert_eq!(served.session.counters().rejects, 0, "a target rejects what the switch sends");
        assert_eq!(served.session.counters().outside_window, 0, "the switch keeps to the window");
    }

    /// Executes one event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let mut choices: Vec<(u8, usize)> = Vec::new();
        choices.extend((!self.to_switch.is_empty()).then_some((0, 0)));
        choices.extend((!self.to_host.is_empty()).then_some((1, 0)));
        choices.extend((!self.front.ios.is_empty()).then_some((2, 0)));
        choices.extend((!self.jobs.is_empty()).then_some((7, 0)));
        for number in 0..self.backs.len() {
            choices.extend((!self.to_back[number].is_empty()).then_some((3, number)));
            choices.extend((!self.from_back[number].is_empty()).then_some((4, number)));
            let works = self.backs[number].as_ref().is_some_and(|served| !served.ios.is_empty());
            choices.extend(works.then_some((5, number)));
        }
        if let Some(streams) = &self.streams {
            choices.extend(streams.readable().map(|number| (6, number)));
        }
        if choices.is_empty() {
            return false;
        }
        let (what, number) = choices[self.chance.index(choices.len())];
        match what {
            0 => {
                let pdu = self.to_switch.pop_front().unwrap();
                self.deliver_to_switch(Conn::Host, pdu);
            }
            1 => {
                let pdu = self.to_host.pop_front().unwrap();
                self.deliver_to_host(&pdu);
            }
            2 => self.work(),
            3 => {
                let pdu = self.to_back[number].pop_front().unwrap();
                if let Some(served) = self.backs[number].as_mut() {
                    served.receive(self.now, &pdu);
                    self.after_back(number);
                }
            }
            4 => {
                let pdu = self.from_back[number].pop_front().unwrap();
                self.deliver_to_switch(Conn::Back(number as u8), pdu);
            }
            5 => self.back_works(number),
            6 => self.switch_reads(number),
            _ => self.answer_job(),
        }
        true
    }

    /// Executes events until there are none.
    pub fn run_until_idle(&mut self) {
        while self.step() {}
    }
}
