//! Entry points of the fuzzers, for machines that read bytes of peers. Nothing panics, and every
//! guarantee holds. The targets under `fuzz/` and the test `fuzz_smoke` share these functions.

pub mod initiator;

pub use initiator::initiator;
use sanloom_scsi::disk::WriteCache;
use sanloom_scsi::iscsi::chap::Credentials;
use sanloom_scsi::iscsi::forward::mover::{Outlet, Output as Moved, RunContext, Stop};
use sanloom_scsi::iscsi::forward::{Action, BackUnit, Conn, Counters, Forward, Mover, Settings, Switch};
use sanloom_scsi::iscsi::framer::{Framer, Layout, Needed, Taken};
use sanloom_scsi::iscsi::initiator::Established as LoggedIn;
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_scsi::iscsi::target::login::{self, LoginConfig};
use sanloom_scsi::iscsi::target::{
    Authentication, ConnectionId, Destination, Directory, Established, Input, Limits, Login, Node, Output, Portal,
    Session, SessionKey, Target,
};
use sanloom_scsi::iscsi::{Parameters, framer};
use sanloom_scsi::map::{LunConfig, LunId, Map, PoolConfig, PoolId, Shape};
use sanloom_scsi::scsi::{Device, DeviceConfig, IoStatus, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_scsi::volume::Volumes;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head, Header, NO_TAG, ScsiResponse, at};
use std::sync::Arc;

/// Entry point with the name of its fuzz target.
pub type EntryPoint = (&'static str, fn(&[u8]));

/// All entry points.
#[allow(dead_code)] // a fuzz target takes one
pub const ALL: &[EntryPoint] =
    &[("iscsi_framer", framer), ("iscsi_initiator", initiator), ("iscsi_login", login), ("iscsi_mover", mover)];

const NAME: &str = "iqn.2026-11.net.example:disk";
const BLOCK: u32 = 512;

/// First byte: digests, and the longest segment. A stream gives the same result in pieces of any
/// length.
pub fn framer(data: &[u8]) {
    let Some((first, stream)) = data.split_first() else { return };
    let mut framer = Framer::new(8 << 10);
    let layout = Layout { header_digest: first & 1 != 0, data_digest: first & 2 != 0 };
    framer.agree(layout, u32::from(first >> 2) * 16);
    let whole = follow(&mut framer.clone(), stream, usize::MAX);
    for most in [1, 3, 64] {
        assert_eq!(follow(&mut framer.clone(), stream, most), whole, "in pieces of {most}");
    }
}

/// All completed units, with their headers.
fn follow(framer: &mut Framer, mut stream: &[u8], most: usize) -> Vec<(framer::Taken, [u8; BHS_BYTES])> {
    let mut all = Vec::new();
    loop {
        let bytes = match framer.needed() {
            Needed::Bytes(bytes) => bytes,
            Needed::Data(bytes) => most.min(bytes as usize).min(stream.len().max(1)),
        };
        let Some((piece, rest)) = stream.split_at_checked(bytes) else { return all };
        let taken = framer.take(piece);
        stream = rest;
        if taken != Taken::More {
            all.push((taken, framer.bhs().0));
        }
        if matches!(taken, Taken::Broken(_)) {
            return all;
        }
    }
}

/// PDUs of a login: flags, fields, and two bytes with the length of the text that follows. `usual`
/// fills in the header. If bit 7 of the fields is set, the text overwrites the header.
fn texts(mut data: &[u8], usual: impl Fn(&mut Bhs, u8)) -> impl Iterator<Item = (Head, &[u8])> {
    std::iter::from_fn(move || {
        let ([flags, fields, low, high], behind) = data.split_first_chunk::<4>()?;
        let bytes = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
        let (text, behind) = behind.split_at(bytes);
        data = behind;
        let mut bhs = Bhs([0; BHS_BYTES]);
        usual(&mut bhs, *fields);
        bhs.0[1] = *flags;
        if fields & 0x80 != 0 {
            bhs.0.iter_mut().zip(text).for_each(|(byte, other)| *byte = *other);
        }
        Some((Head { data_bytes: text.len() as u32, ..Head::parse(&bhs.0) }, text))
    })
}

/// One target requires authentication, the other does not. With any input, a login ends in a
/// session, in a refusal, or without an answer.
pub fn login(data: &[u8]) {
    let portals = vec![Portal { address: "192.0.2.1:3260".into(), group: 1 }];
    let secret = |name: &str| Credentials { name: name.into(), secret: format!("a secret of the {name}").into() };
    let asks = Authentication { initiators: vec![secret("host")], own: Some(secret("array")) };
    let open = Target { portals: portals.clone(), ..Target::new(NAME) };
    let asking = Target { portals, authentication: asks, ..Target::new("iqn.2026-11.net.example:asks") };
    let config = LoginConfig {
        node: Arc::new(Node { targets: vec![open, asking], ..Node::default() }),
        address: "192.0.2.1:3260".into(),
        group: 1,
        connection: ConnectionId(1),
        challenge: [7; 16],
        timeout: Span::from_secs(5),
    };
    let (mut login, mut directory) = (Login::new(Instant::ZERO, config), Directory::default());
    let mut over = false;
    for (head, text) in texts(data, |bhs, fields| (bhs.0[0], bhs.0[8], bhs.0[13]) = (0x43, 0x80, fields & 3)) {
        login.handle(Instant::ZERO, login::Input::Pdu { head, text: text.into() }, &mut directory);
        let mut answers = 0;
        while let Some(output) = login.poll_output() {
            assert!(!over, "output after the end: {output:?}");
            match output {
                login::Output::Send { head, text } => {
                    let Header::LoginResponse(response) = head.header else { panic!("{head}") };
                    assert!(text.len() <= 8 << 10, "a text of {} bytes", text.len());
                    answers += 1;
                    over = response.status.0 >> 8 != 0;
                    if over {
                        assert_eq!(login.poll_output(), Some(login::Output::Close), "{}", response.status);
                    }
                }
                login::Output::Done(established) => {
                    let Established { key, .. } = *established;
                    assert!(key.target != Some(1), "in without a proof");
                    over = true;
                }
                login::Output::Close => over = true,
            }
        }
        assert!(answers <= 1, "{answers} answers to one request");
    }
}

/// Host and two back ends. Records of six bytes are nearly valid PDUs (sender, type, flags, tag,
/// block or offset, length), which the Data Mover reads in pieces.
pub fn mover(data: &[u8]) {
    moved(data);
}

/// Runs `mover` and returns the counters of the forwarding path.
pub fn moved(data: &[u8]) -> Counters {
    let Some((first, records)) = data.split_first() else { return Counters::default() };
    let digest = first & 1 != 0;
    let front = Parameters { initial_r2t: false, header_digest: digest, ..Parameters::default() };
    let mut bed = MoverBed::new(front);
    let mut streams: [Vec<u8>; 3] = Default::default();
    let mut cmd_sn = [1_u32; 3];
    for record in records.chunks_exact(6) {
        let from = usize::from(record[0]) % 3;
        let segment = header(record, from == 0, &mut cmd_sn[from]);
        let (bhs, bytes) = &segment;
        streams[from].extend_from_slice(&bhs.0);
        if digest {
            streams[from].extend_from_slice(&sanloom_wire::iscsi::digest::of(&bhs.0));
        }
        streams[from].extend(std::iter::repeat_n(record[5], *bytes));
        // Half of the bytes now, the rest with those that follow.
        let read = streams[from].len() / (1 + usize::from(record[0] >> 7));
        let mut input: Vec<u8> = streams[from].drain(..read).collect();
        let Some(used) = bed.read(from, &mut input) else { break };
        let rest = input.split_off(used);
        streams[from].splice(0..0, rest);
    }
    *bed.forward.counters()
}

/// Header of a PDU of the host or of a back end, and the number of bytes after it.
fn header(record: &[u8], of_host: bool, cmd_sn: &mut u32) -> (Bhs, usize) {
    let [_, kind, flags, tag, place, length] = *record else { return (Bhs([0; BHS_BYTES]), 0) };
    let mut bhs = Bhs([0; BHS_BYTES]);
    let kinds: &[u8] =
        if of_host { &[0x01, 0x01, 0x05, 0x00, 0x42, 0x04] } else { &[0x21, 0x25, 0x25, 0x31, 0x20, 0x22, 0x32, 0x3f] };
    bhs.0[0] = kinds[usize::from(kind) % kinds.len()];
    bhs.0[1] = flags;
    let is_read = flags & 0x40 != 0;
    let bytes = match bhs.0[0] {
        0x01 if is_read => 0,
        0x01 | 0x05 | 0x25 => 4 * usize::from(length),
        _ => 0,
    };
    bhs.0[5..8].copy_from_slice(&(bytes as u32).to_be_bytes()[1..]);
    let (slot, place_of_part, generation, abort) = (tag & 7, tag >> 3 & 1, tag >> 4 & 7, tag >> 7);
    let of_back = [(slot, 0), (place_of_part, 16), (generation, 21), (abort, 28)];
    let of_back = of_back.iter().fold(0, |word, (field, at)| word | u32::from(*field) << at);
    bhs.set_word(at::INITIATOR_TAG, if of_host { u32::from(tag) } else { of_back });
    let expected = (u32::from(length) + 1) * if of_host { BLOCK } else { 4 };
    match (bhs.0[0], of_host) {
        (0x01, _) => {
            bhs.set_word(at::LENGTH - 24, expected);
            bhs.set_word(at::CMD_SN, *cmd_sn);
            *cmd_sn = cmd_sn.wrapping_add(1);
            let opcode = if is_read { 0x28 } else { 0x2a };
            bhs.0[32..42].copy_from_slice(&[opcode, 0, 0, 0, 0, place, 0, 0, length.wrapping_add(1), 0]);
        }
        _ => {
            // Unsolicited data, or data for an R2T of the switch.
            let target_tag = match (of_host, place >> 5) {
                (true, 0) => NO_TAG,
                (true, transfer) => u32::from(transfer) << 16 | u32::from(slot),
                (false, transfer) => u32::from(transfer),
            };
            bhs.set_word(at::TARGET_TAG, target_tag);
            bhs.set_word(at::CMD_SN, *cmd_sn);
            bhs.set_word(at::EXP_SN, 1);
            bhs.set_word(at::MAX_CMD_SN, 64);
            bhs.set_word(at::OFFSET, u32::from(place & 0x1f) * 4);
            bhs.set_word(at::LENGTH, expected);
        }
    }
    (bhs, bytes.next_multiple_of(4))
}

/// Switch with one volume over two back ends.
struct MoverBed {
    statuses: Statuses,
    mover: Mover,
    forward: Forward,
    session: Session,
    device: Device,
    volumes: Volumes,
    disks: Vec<Option<sanloom_scsi::map::VolumeId>>,
}

impl MoverBed {
    fn new(front: Parameters) -> MoverBed {
        let pool = PoolConfig { name: "pool".into(), block_bytes: BLOCK, extent_blocks: 16 };
        let lun = |number| LunConfig { name: format!("lun{number}").into(), pool: PoolId(0) };
        let mut map = Map::new(vec![pool], (0..2).map(lun).collect());
        (0..2).for_each(|lun| assert!(map.reached(LunId(lun), 128)));
        let striped = Shape::Striped { width: 2, stripe_blocks: 8 };
        let change = map.plan_create("volume", PoolId(0), striped, 256).expect("room");
        map.apply(change);
        let volume = map.find("volume");
        let mut device = Device::new(DeviceConfig {
            ports: vec![PortConfig { name: PortName::Iscsi { target: NAME.into(), portal_group: 1 }, group: 1 }],
            units: vec![UnitConfig::new(256, BLOCK)],
            attentions: false,
            ..DeviceConfig::default()
        });
        let key =
            SessionKey { target: Some(0), initiator: "iqn.2026-11.net.example:host".into(), isid: [1; 6], group: 1 };
        let (tsih, cid, exp_cmd_sn, stat_sn) = (1, 0, 1, 1);
        let established = Established { key, tsih, cid, parameters: front, exp_cmd_sn, stat_sn, replaces: None };
        let node = Arc::new(Node { targets: vec![Target::new(NAME)], ..Node::default() });
        let session = Session::new(Instant::ZERO, established, node, Limits::default(), Some((0, &mut device)));
        let mut bed = MoverBed {
            statuses: Statuses::new(1),
            mover: Mover::new(&front),
            forward: Forward::new(Settings::default(), front),
            session,
            device,
            volumes: Volumes::new(map),
            disks: vec![volume],
        };
        for back in 0..2 {
            bed.mover.connect(back, &front);
            let established = LoggedIn {
                tsih: 1,
                portal_group: Some(1),
                parameters: front,
                cmd_sn: 1,
                max_cmd_sn: 64,
                exp_stat_sn: 1,
            };
            let unit = BackUnit { id: LunId(back.into()), lun: [0; 8], cache: WriteCache::Fua };
            let mut actions = Vec::new();
            let (forward, volumes) = (&mut bed.forward, &mut bed.volumes);
            let fit = forward.connect(Instant::ZERO, back, &established, &[unit], volumes, &mut actions);
            assert!(fit.is_ok(), "{fit:?}");
            bed.is_ready(back, actions);
        }
        bed
    }

    /// Answers TEST UNIT READY for the unit of a back end; nothing is forwarded before that.
    fn is_ready(&mut self, back: u8, mut actions: Vec<Action>) {
        let [Action::Send { header, .. }] = actions[..] else { panic!("no TEST UNIT READY: {actions:?}") };
        let initiator_tag = Bhs(header).initiator_tag();
        let MoverBed { mover, statuses, forward, session, device, volumes, disks } = self;
        mover.execute(&mut actions, &mut Outlet { output: &mut Moved::default(), statuses });
        let (flags, response, status, snack_tag, stat_sn, exp_cmd_sn, max_cmd_sn) = (0, 0, 0, 0, 1, 2, 64);
        let (exp_data_sn, read_residual, residual) = (0, 0, 0);
        #[rustfmt::skip]
        let answer = ScsiResponse {
            flags, response, status, initiator_tag, snack_tag, stat_sn, exp_cmd_sn, max_cmd_sn, exp_data_sn, read_residual, residual,
        };
        let mut switch = Switch { session, device, volumes, disks };
        let mut header = Head::new(answer).to_bytes();
        forward.on_header(Instant::ZERO, Conn::Back(back), &mut header, &mut switch, &mut actions);
        assert_eq!((actions.as_slice(), forward.awaits_unit(back)), (&[][..], false));
    }

    /// Returns the number of bytes consumed, or `None` if a connection would be closed.
    fn read(&mut self, from: usize, input: &mut [u8]) -> Option<usize> {
        let conn = from.checked_sub(1).map_or(Conn::Host, |back| Conn::Back(back as u8));
        let mut at = 0;
        loop {
            let (before, mut output) = (at, Moved::default());
            let MoverBed { mover, statuses, forward, session, device, volumes, disks } = self;
            let mut switch = Switch { session, device, volumes, disks };
            let outlet = Outlet { output: &mut output, statuses };
            let mut context = RunContext { now: Instant::ZERO, forward, switch: &mut switch, outlet };
            let stop = mover.run(&mut context, conn, input, &mut at);
            assert!(at >= before && at <= input.len());
            for piece in output.to_host.iter().chain(output.to_backs.iter().flatten()) {
                if let sanloom_scsi::iscsi::forward::mover::Piece::Input(range) = piece {
                    assert!(range.start < range.end && range.end <= input.len(), "{range:?} of {}", input.len());
                }
            }
            match stop {
                Stop::More | Stop::Blocked => return output.closes.is_empty().then_some(at),
                Stop::HeaderDigest => return None,
                Stop::Conventional(range) => {
                    assert_eq!(range.end, at);
                    if let Some(header) = input[range.clone()].first_chunk() {
                        let head = Head::parse(header);
                        self.receive(head, &input[range.start + BHS_BYTES.min(range.len())..range.end]);
                    }
                }
                Stop::Session => {}
            }
            self.drain();
            if !output.closes.is_empty() {
                return None;
            }
        }
    }

    /// Passes a PDU to the conventional path, if it is complete.
    fn receive(&mut self, head: Head, data: &[u8]) {
        let data = &data[..data.len().min(head.data_bytes as usize)];
        let head = Head { data_bytes: data.len() as u32, ..head };
        self.session.handle(Instant::ZERO, Input::Header(head), Some(&mut self.device));
        if data.is_empty() {
            return;
        }
        let input = match self.session.destination() {
            Destination::Text => Input::Text { data: data.into(), intact: true },
            Destination::Buffer { .. } | Destination::Skip => Input::Segment { intact: true },
        };
        self.session.handle(Instant::ZERO, input, Some(&mut self.device));
    }

    /// Executes the outputs of the session; all block I/O completes at once.
    fn drain(&mut self) {
        while let Some(output) = self.session.poll_output() {
            let input = match output {
                Output::Io(io) => Input::IoDone { tag: io.tag, status: IoStatus::Good },
                Output::Fetch { tag, bytes } => Input::Parameters { tag, bytes: vec![0; bytes as usize] },
                Output::Ends(_) => Input::OthersEnded,
                Output::Recall(tag) => {
                    let mut actions = Vec::new();
                    let MoverBed { mover, statuses, forward, session, device, volumes, disks } = self;
                    let mut switch = Switch { session, device, volumes, disks };
                    forward.recall(Instant::ZERO, tag, &mut switch, &mut actions);
                    mover.execute(&mut actions, &mut Outlet { output: &mut Moved::default(), statuses });
                    continue;
                }
                _ => continue,
            };
            self.session.handle(Instant::ZERO, input, Some(&mut self.device));
        }
        while self.device.poll_output().is_some() {}
    }
}
