//! Neighbour machine: every state with every event.

use sanloom_fc::fspf::{Fspf, FspfConfig, Input, NeighbourState, Output};
use sanloom_fc::ils::Send;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Message;
use sanloom_wire::sw_ils::{
    FspfHeader, Hello, Incarnation, LinkStateAck, LinkStateRecord, LinkStateUpdate, SwIls, lsu_flag,
};
use std::fmt::Write;

const PORT: u16 = 4;
const OWN: u8 = 1;
const FAR: u8 = 2;

struct Rig {
    fspf: Fspf,
    now: Instant,
    outputs: Vec<Output>,
}

impl Rig {
    fn input(&mut self, input: Input) {
        self.fspf.handle(self.now, input);
        self.outputs.extend(std::iter::from_fn(|| self.fspf.poll_output()));
    }

    fn receive(&mut self, message: SwIls) {
        self.input(Input::Message { port: PORT, message });
    }

    /// Advances the clock. With `hello_to`, the neighbour sends an HLO with this recipient every 20
    /// s.
    fn wait(&mut self, seconds: u64, hello_to: Option<u8>) {
        for second in 0..seconds {
            self.now += Span::from_secs(1);
            self.input(Input::Timeout);
            if let Some(recipient) = hello_to.filter(|_| second % 20 == 0) {
                self.receive(hello(FAR, recipient));
            }
        }
    }

    fn state(&self) -> NeighbourState {
        self.fspf.neighbours().next().map_or(NeighbourState::Down, |neighbour| neighbour.state)
    }
}

fn hello(domain: u8, recipient: u8) -> SwIls {
    SwIls::Hlo(Hello { header: FspfHeader::new(domain), options: 0, hello_s: 20, dead_s: 80, recipient, port: 9 })
}

fn update(flags: u8) -> SwIls {
    SwIls::Lsu(LinkStateUpdate { header: FspfHeader::new(FAR), flags, records: Vec::new() })
}

fn acknowledgement() -> SwIls {
    let own = LinkStateRecord::of_switch(OWN, Incarnation::FIRST, Vec::new());
    let header = FspfHeader::new(FAR);
    SwIls::Lsa(LinkStateAck { header, flags: lsu_flag::LAST, records: vec![own.header(0)] })
}

fn in_state(state: NeighbourState) -> Rig {
    let mut rig = Rig { fspf: Fspf::new(FspfConfig::default()), now: Instant::ZERO, outputs: Vec::new() };
    rig.input(Input::Domain(Some(OWN)));
    rig.input(Input::LinkUp { port: PORT, cost: 125, bundle: None });
    let path: &[SwIls] = match state {
        NeighbourState::Down => &[],
        NeighbourState::Init => &[hello(FAR, 0)],
        NeighbourState::DatabaseExchange => &[hello(FAR, OWN)],
        NeighbourState::AcknowledgementWait => &[hello(FAR, OWN), update(lsu_flag::COMPLETE)],
        NeighbourState::DatabaseWait => &[hello(FAR, OWN), acknowledgement()],
        NeighbourState::Full => &[hello(FAR, OWN), acknowledgement(), update(lsu_flag::COMPLETE)],
    };
    path.iter().for_each(|message| rig.receive(message.clone()));
    assert_eq!(rig.state(), state);
    rig.outputs.clear();
    rig
}

type Stimulus = (&'static str, fn(&mut Rig));

const STIMULI: [Stimulus; 13] = [
    ("HLO naming nobody", |rig| rig.receive(hello(FAR, 0))),
    ("HLO naming us", |rig| rig.receive(hello(FAR, OWN))),
    ("HLO naming another", |rig| rig.receive(hello(FAR, 7))),
    ("HLO of another switch", |rig| rig.receive(hello(3, OWN))),
    ("HLO of ourselves", |rig| rig.receive(hello(OWN, OWN))),
    ("HLO with other intervals", |rig| {
        let SwIls::Hlo(hello) = hello(FAR, OWN) else { unreachable!() };
        rig.receive(SwIls::Hlo(Hello { dead_s: 40, ..hello }));
    }),
    ("LSU, more to come", |rig| rig.receive(update(lsu_flag::SYNCHRONISING))),
    ("LSU, the last", |rig| rig.receive(update(lsu_flag::COMPLETE))),
    ("LSA of everything", |rig| rig.receive(acknowledgement())),
    ("5 s", |rig| rig.wait(5, None)),
    ("80 s without HLO", |rig| rig.wait(80, None)),
    ("80 s with HLO", |rig| rig.wait(80, Some(OWN))),
    ("link down", |rig| rig.input(Input::LinkDown { port: PORT })),
];

const STATES: [NeighbourState; 6] = [
    NeighbourState::Down,
    NeighbourState::Init,
    NeighbourState::DatabaseExchange,
    NeighbourState::AcknowledgementWait,
    NeighbourState::DatabaseWait,
    NeighbourState::Full,
];

#[test]
fn the_transition_table_of_a_neighbour() {
    let mut table = String::new();
    for state in STATES {
        writeln!(table, "{state}").unwrap();
        for (name, stimulus) in STIMULI {
            let mut rig = in_state(state);
            stimulus(&mut rig);
            let line = format!("  {name:<25} {:<21} {}", rig.state().to_string(), summary(&rig.outputs));
            writeln!(table, "{}", line.trim_end()).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

/// Sent messages and outputs in the order of their first occurrence, with their numbers.
fn summary(outputs: &[Output]) -> String {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for output in outputs.iter().map(short) {
        match counted.iter_mut().find(|(known, _)| *known == output) {
            Some((_, times)) => *times += 1,
            None => counted.push((output, 1)),
        }
    }
    let times = |(output, times): &(String, usize)| match times {
        1 => output.clone(),
        times => format!("{times} x {output}"),
    };
    counted.iter().map(times).collect::<Vec<_>>().join(", ")
}

fn short(output: &Output) -> String {
    match output {
        Output::Send(Send::Notice { message: Message::SwIls(message), .. }) => match &**message {
            SwIls::Hlo(hello) => format!("HLO to {}", hello.recipient),
            SwIls::Lsu(update) => format!("LSU {}/{}", update.flags, update.records.len()),
            SwIls::Lsa(acknowledgement) => format!("LSA {}", acknowledgement.flags),
            other => other.to_string(),
        },
        Output::Neighbour { state, .. } => format!("[{state}]"),
        Output::AdjacencyLost { .. } => "adjacency lost".to_owned(),
        Output::AdjacencyRestored { .. } => "adjacency restored".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn invalid_messages_are_counted_and_change_nothing() {
    let mut rig = in_state(NeighbourState::Full);
    let SwIls::Hlo(good) = hello(FAR, OWN) else { unreachable!() };
    for header in [
        FspfHeader { version: 1, ..good.header },
        FspfHeader { region: 9, ..good.header },
        FspfHeader { authentication_type: 1, ..good.header },
        FspfHeader::new(0),
    ] {
        rig.receive(SwIls::Hlo(Hello { header, ..good }));
    }
    rig.receive(SwIls::Bf);
    let header = FspfHeader::new(8);
    rig.receive(SwIls::Lsu(LinkStateUpdate { header, flags: lsu_flag::UPDATE, records: Vec::new() }));
    rig.receive(SwIls::Lsa(LinkStateAck { header, flags: lsu_flag::UPDATE, records: Vec::new() }));
    rig.input(Input::Message { port: 99, message: hello(FAR, OWN) });
    assert_eq!((rig.outputs.len(), rig.state()), (0, NeighbourState::Full));
    assert_eq!(rig.fspf.counters().discarded, 8);
}
