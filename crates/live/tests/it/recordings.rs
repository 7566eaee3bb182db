//! Truncated, mutated and invented recordings. Each is rejected with line and reason, or replayed,
//! without a panic and without more memory than a valid recording of that size.

use proptest::prelude::*;
use sanloom_api::zone_database::Database;
use sanloom_fc::dcbx;
use sanloom_fc::fabric_switch::Input;
use sanloom_fc::fip::{fcf, vn2vn};
use sanloom_fc::san::Lab;
use sanloom_fc::switch::PortKind;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_fc::zoning::{ZoneDefinition, ZoneEdit};
use sanloom_live::record::{
    AgentHead, Head, InputValue, Line, Machine, Recorder, ReplayError, Replayed, Source, SwitchHead, VERSION, head,
    replay,
};
use sanloom_scsi::time::Instant;
use sanloom_wire::els::Els;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::OnceLock;

const LAB: &str = r#"
[switch.sw1]
domain = 1
[host.server1]
[host.server2]
[storage.disk1]
lun_size = "1MiB"
[storage.station]
lun_size = "1MiB"
vn2vn = { carrier = "dgram" }
[zoning]
default = "closed"
[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram", dcbx = true }
[[link]]
from = "server2"
to = "sw1"
[[link]]
from = "disk1"
to = "sw1"
"#;

fn lab() -> &'static Lab {
    static LOADED: OnceLock<Lab> = OnceLock::new();
    LOADED.get_or_init(|| match sanloom_lab::load("lab.toml", LAB, &[]) {
        Ok(loaded) => loaded.lab,
        Err(mistakes) => panic!("{}", mistakes.render(false)),
    })
}

fn flogi() -> Message {
    let class_3 = ClassParameters { flags: ClassParameters::VALID, ..ClassParameters::default() };
    Message::from(Els::Flogi(Login {
        common: CommonParameters { receive_size_bytes: 2112, ..CommonParameters::default() },
        port_name: Wwpn(0x2000_0000_0000_0001),
        node_name: Wwnn(0x1000_0000_0000_0001),
        class_1: ClassParameters::default(),
        class_2: ClassParameters::default(),
        class_3,
    }))
}

/// Records inputs of the machines of the lab: a login as a value and one as bytes, a rejected
/// request, a change of zones, an advertisement for each FCF, a station that probes, and an LLDP
/// agent.
fn record_inputs(recorder: &mut Recorder) {
    let recorder = RefCell::new(recorder);
    let write = |now, machine, value, input: &dyn Debug| recorder.borrow_mut().input(now, machine, value, input);
    let switch = |now, input: &Input| write(now, Machine::Switch(0), InputValue::of_switch(input), input);
    let fcf = |now, input: &fcf::Input| write(now, Machine::Fcf(0), InputValue::of_fcf(input), input);
    let station = |now, input: &vn2vn::Input| write(now, Machine::Station(0), InputValue::of_station(input), input);
    let agent = |now, input: &dcbx::Input| write(now, Machine::Agent(0), InputValue::of_agent(input), input);
    let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
    let frame = |message: Message, s_id: FcId, typed: bool| {
        let header = message.header(s_id, FcId::F_PORT, 0x11, 0xffff);
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let payload = if typed { Payload::Typed(message) } else { Payload::Bytes(bytes.into()) };
        Frame { header, payload }
    };
    for port in 0..3 {
        switch(at(1), &Input::PortUp { port, kind: PortKind::F });
    }
    switch(at(20), &Input::Timeout);
    switch(at(2_100), &Input::Timeout);
    switch(at(2_200), &Input::Frame { port: 1, frame: frame(flogi(), FcId::ZERO, true) });
    switch(at(2_300), &Input::Frame { port: 2, frame: frame(flogi(), FcId::ZERO, false) });
    switch(at(2_400), &Input::Frame { port: 1, frame: frame(Els::Rtv.into(), FcId::ZERO, true) });
    let zone = ZoneDefinition { members: Vec::new(), principals: Vec::new() };
    let edits = vec![ZoneEdit::CreateZone { name: "z1".to_owned(), zone }];
    switch(at(2_500), &Input::ChangeZones { tag: 3, change: ZoneChange::Edits(edits) });
    switch(at(2_600), &Input::Incident { port: 2, code: 5 });
    switch(at(2_700), &Input::PortDown { port: 2 });
    fcf(at(2_800), &fcf::Input::LinkUp);
    let (to, from, pdu) = (MacAddr([1; 6]), MacAddr([2; 6]), vec![0x10, 0, 0, 1, 0, 1].into());
    fcf(at(2_900), &fcf::Input::Fip { to, from, pdu });
    fcf(at(9_000), &fcf::Input::Timeout);
    station(at(9_100), &vn2vn::Input::LinkUp);
    station(at(9_900), &vn2vn::Input::Timeout);
    agent(at(9_910), &dcbx::Input::LinkUp);
    agent(at(9_990), &dcbx::Input::Lldp { from, pdu: vec![2, 7, 4, 1, 2, 3].into() });
    switch(at(99_000), &Input::Rebuild { disruptive: true });
}

fn replay_bytes(bytes: &[u8]) -> Result<Replayed, ReplayError> {
    let mut input = bytes;
    let head = head(&mut input)?;
    replay(lab(), &head, &mut input)
}

/// Lines of a good recording. Outputs of the machines are added at each line where a replay misses
/// them.
fn good() -> &'static [String] {
    static GOOD: OnceLock<Vec<String>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let source = Source { label: "lab.toml".to_owned(), text: LAB.to_owned(), set: Vec::new() };
        let switch = SwitchHead {
            name: "sw1".to_owned(),
            made_ns: 0,
            zones: Database::default(),
            addresses: BTreeMap::from([("20:00:00:00:00:00:00:01".to_owned(), "010100".to_owned())]),
        };
        let agent = AgentHead {
            mac: "0e:fd:00:00:00:01".to_owned(),
            interface: "server1-sw1".to_owned(),
            system: "sw1".to_owned(),
        };
        let head = Head {
            sanloom_recording: VERSION,
            source,
            switches: vec![switch],
            stations: vec!["station".to_owned()],
            agents: BTreeMap::from([(0, agent)]),
        };
        let path = std::env::temp_dir().join(format!("sanloom-recording-{}.jsonl", std::process::id()));
        let mut recorder = Recorder::create(&path, &head).unwrap();
        record_inputs(&mut recorder);
        recorder.flush();
        let inputs = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut lines: Vec<String> = Vec::new();
        for input in inputs.lines() {
            lines.push(input.to_owned());
            if lines.len() == 1 {
                continue;
            }
            let Line::In { m, .. } = serde_json::from_str(input).unwrap() else { panic!("{input}") };
            loop {
                let end = serde_json::to_string(&Line::End { m }).unwrap();
                let text = format!("{}\n{end}\n", lines.join("\n"));
                match replay_bytes(text.as_bytes()).unwrap().divergence {
                    Some(divergence) => {
                        let o = divergence.replayed.unwrap();
                        lines.push(serde_json::to_string(&Line::Out { m, o }).unwrap());
                    }
                    None => break lines.push(end),
                }
            }
        }
        lines
    })
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// Replays any bytes: the replay reaches the end, or rejects a line with a reason.
fn replay_any(bytes: &[u8]) -> Result<(), TestCaseError> {
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    match replay_bytes(bytes) {
        Ok(replayed) => {
            if let Some(divergence) = replayed.divergence {
                prop_assert!((2..=lines).contains(&divergence.line), "{divergence:?}");
            }
        }
        Err(error @ (ReplayError::Line { line, .. } | ReplayError::Lost { line, .. })) => {
            prop_assert!((1..=lines).contains(&line), "{error}");
            let reason = error.to_string();
            prop_assert!(reason.len() > "line 1 is not part of a recording: ".len(), "{reason}");
        }
        Err(ReplayError::Newer(version)) => prop_assert!(version > VERSION),
        Err(ReplayError::Switch(name)) => prop_assert!(lab().switches.iter().all(|switch| switch.name != name)),
        Err(error @ ReplayError::Read(_)) => return Err(TestCaseError::fail(error.to_string())),
    }
    Ok(())
}

#[test]
fn a_recording_with_every_kind_of_line_replays_with_equal_outputs() {
    let replayed = replay_bytes(text(good()).as_bytes()).unwrap();
    assert_eq!((replayed.divergence, replayed.cut), (None, false));
    assert!(replayed.inputs >= 18 && replayed.outputs > 20, "{} {}", replayed.inputs, replayed.outputs);
    for machine in [Machine::Switch(0), Machine::Fcf(0), Machine::Station(0), Machine::Agent(0)] {
        let machine = format!("\"m\":{}", serde_json::to_string(&machine).unwrap());
        for kind in ["{\"in\":", "{\"out\":", "{\"end\":"] {
            let found = good().iter().any(|line| line.starts_with(kind) && line.contains(&machine));
            assert!(found, "{kind} {machine}");
        }
    }
}

#[test]
fn a_recording_may_end_anywhere_behind_its_first_line() {
    let whole = text(good());
    let head_bytes = good()[0].len();
    let last_lines = whole.len() - 2_000;
    for end in (0..=head_bytes).step_by(7).chain((head_bytes..last_lines).step_by(61)).chain(last_lines..whole.len()) {
        match replay_bytes(&whole.as_bytes()[..end]) {
            Ok(replayed) => {
                assert!(end >= head_bytes, "{end}");
                assert_eq!(replayed.divergence, None, "{end}");
                // A complete last line needs no line feed.
                let at_an_end = whole.as_bytes()[end] == b'\n' || whole.as_bytes()[end - 1] == b'\n';
                assert_eq!(replayed.cut, !at_an_end, "{end}");
            }
            Err(ReplayError::Line { line: 1, reason }) => assert!(end < head_bytes && !reason.is_empty(), "{end}"),
            Err(error) => panic!("{end}: {error}"),
        }
    }
}

#[test]
fn a_switch_that_was_made_after_the_end_of_all_times_is_rejected() {
    for made_ns in [1 << 63, u64::MAX] {
        let head = good()[0].replace("\"made_ns\":0", &format!("\"made_ns\":{made_ns}"));
        let refused = replay_bytes(text(&[head]).as_bytes()).unwrap_err();
        assert!(matches!(refused, ReplayError::Line { line: 1, .. }), "{refused}");
        assert!(refused.to_string().contains(&format!("the time {made_ns} ns is out of range")), "{refused}");
    }
}

#[test]
fn an_invalid_line_is_named() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let wrong = [
        "",
        "{}",
        "null",
        "{\"in\":7}",
        "{\"in\":{\"t\":-1,\"m\":{\"switch\":0},\"i\":\"timeout\"}}",
        "{\"in\":{\"t\":1e99,\"m\":{\"switch\":0},\"i\":\"timeout\"}}",
        "{\"in\":{\"t\":9223372036854775808,\"m\":{\"switch\":0},\"i\":\"timeout\"}}",
        "{\"in\":{\"t\":1,\"m\":{\"switch\":1},\"i\":\"timeout\"}}",
        "{\"in\":{\"t\":1,\"m\":{\"fcf\":18446744073709551615},\"i\":\"timeout\"}}",
        "{\"in\":{\"t\":1,\"m\":{\"switch\":0},\"i\":\"shutdown\"}}",
        "{\"in\":{\"t\":1,\"m\":{\"switch\":0},\"i\":{\"frame\":{\"port\":1,\"frame\":{\"header\":\"00\",\"payload\":\"\"}}}}}",
        "{\"in\":{\"t\":1,\"m\":{\"switch\":0},\"i\":{\"frame\":{\"port\":1,\"frame\":{\"header\":\"zz\",\"payload\":\"0\"}}}}}",
        "{\"in\":{\"t\":1,\"m\":{\"fcf\":0},\"i\":{\"fip\":{\"to\":\"01\",\"from\":\"02\",\"pdu\":\"\"}}}}",
        "{\"end\":{\"m\":{\"agent\":9}}}",
        "\u{fffd}",
        &deep,
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let at = 2 + number % (good().len() - 2);
        let mut lines = good().to_vec();
        lines.insert(at, wrong.to_owned());
        match replay_bytes(text(&lines).as_bytes()) {
            Err(ReplayError::Line { line, reason }) => {
                assert_eq!(line, at as u64 + 1, "{wrong:.99}");
                assert!(!reason.is_empty(), "{wrong:.99}");
            }
            other => panic!("{wrong:.99}: {other:?}"),
        }
    }
}

/// One change of a recording.
#[derive(Clone, Debug)]
enum Mutation {
    Byte(prop::sample::Index, u8),
    Remove(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    /// Replaces a line by another line.
    Line(prop::sample::Index, prop::sample::Index),
    /// Replaces a run of digits by this number.
    Number(prop::sample::Index, String),
    /// Replaces the time of an input.
    Time(prop::sample::Index, u64),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = || any::<prop::sample::Index>();
    let numbers =
        ["0", "1", "255", "65535", "4294967295", "18446744073709551615", "18446744073709551616", "-1", "1e400"];
    let times = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0u64..100_000_000_000];
    prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        (place(), 1usize..60).prop_map(|(at, bytes)| Mutation::Remove(at, bytes)),
        (place(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (place(), place()).prop_map(|(to, from)| Mutation::Line(to, from)),
        (place(), prop::sample::select(numbers.to_vec())).prop_map(|(at, to)| Mutation::Number(at, to.to_owned())),
        (place(), times).prop_map(|(at, to)| Mutation::Time(at, to)),
    ]
}

fn mutated(bytes: &mut Vec<u8>, mutation: &Mutation) {
    match mutation {
        Mutation::Byte(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Mutation::Remove(at, count) => {
            let at = at.index(bytes.len());
            let end = (at + count).min(bytes.len() - 1);
            bytes.drain(at..end.max(at));
        }
        Mutation::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Mutation::Line(to, from) => {
            let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let (to, from) = (to.index(lines.len()), from.index(lines.len()));
            lines[to] = lines[from];
            *bytes = lines.join(&b'\n');
        }
        Mutation::Number(at, to) => {
            let from = at.index(bytes.len());
            if let Some(start) = (from..bytes.len()).find(|&at| bytes[at].is_ascii_digit()) {
                let end = (start..bytes.len()).find(|&at| !bytes[at].is_ascii_digit()).unwrap_or(bytes.len());
                bytes.splice(start..end, to.bytes());
            }
        }
        Mutation::Time(at, to) => {
            let key = b"\"t\":";
            let from = at.index(bytes.len());
            if let Some(start) = (from..bytes.len()).find(|&at| bytes[at..].starts_with(key)).map(|at| at + key.len()) {
                let end = (start..bytes.len()).find(|&at| !bytes[at].is_ascii_digit()).unwrap_or(bytes.len());
                bytes.splice(start..end, to.to_string().into_bytes());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_recording_is_replayed_or_rejected(mutations in prop::collection::vec(mutation(), 1..4)) {
        let mut bytes = text(good()).into_bytes();
        mutations.iter().for_each(|mutation| mutated(&mut bytes, mutation));
        replay_any(&bytes)?;
    }

    /// A recording without outputs is replayed to the end.
    #[test]
    fn mutated_inputs_disturb_no_machine(mutations in prop::collection::vec(mutation(), 1..4)) {
        let inputs: Vec<String> = good().iter().filter(|line| line.starts_with("{\"in\"")).cloned().collect();
        let mut bytes = text(&inputs).into_bytes();
        mutations.iter().for_each(|mutation| mutated(&mut bytes, mutation));
        replay_any(&[good()[0].as_bytes(), b"\n", &bytes].concat())?;
    }

    #[test]
    fn random_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..2_000), behind in any::<bool>()) {
        let head = if behind { text(&good()[..1]).into_bytes() } else { Vec::new() };
        replay_any(&[&head[..], &bytes].concat())?;
    }
}
