//! Random networks and random actions on them.

use crate::frame_path::plain::Chances;
use proptest::prelude::*;
use sanloom_fc::config::{Arbitration, CrossbarLimits, IslChoice, IslHash, LineRate, Priority, Queueing};

/// A network with a sequence of actions.
#[derive(Clone, Debug)]
pub struct Case {
    pub switches: Vec<SwitchCase>,
    /// Switches at both ends, rate, propagation delay in ns, credits of both directions, and
    /// whether the link shares a bundle with the previous one.
    pub isls: Vec<(usize, usize, LineRate, u64, [u32; 2], bool)>,
    pub nports: Vec<NPortCase>,
    /// Virtual channels that a link between switches with virtual output queues may have, with
    /// their shares of its credits; empty: none.
    pub channels: Vec<(u8, u16)>,
    pub isl_choice: IslChoice,
    pub isl_hash: IslHash,
    /// Exponent of the state changes of credit recovery on all links; 0: none.
    pub bb_sc_n: u8,
    /// In ns; `None` if it never expires.
    pub hold_time: Option<u64>,
    pub e_d_tov: Option<u64>,
    /// Actions, each with the time since the previous one in ns.
    pub actions: Vec<(u64, Action)>,
}

#[derive(Clone, Copy, Debug)]
pub struct SwitchCase {
    pub queueing: Queueing,
    pub arbitration: Arbitration,
    pub crossbar: CrossbarLimits,
    pub cut_through: bool,
    pub latency_ns: u64,
}

impl SwitchCase {
    fn with(self, queueing: Option<Queueing>) -> SwitchCase {
        SwitchCase { queueing: queueing.unwrap_or(self.queueing), ..self }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct NPortCase {
    pub switch: usize,
    pub rate: LineRate,
    pub light_ns: u64,
    pub credits: [u32; 2],
    pub empties_after_ns: u64,
}

/// An action. Its numbers of links, lanes, switches and ports are taken modulo their count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action {
    /// A data sequence.
    Data {
        from: usize,
        to: Target,
        bytes: u32,
    },
    Message {
        from: usize,
        to: Target,
        bytes: usize,
    },
    FromSwitch {
        switch: usize,
        port: usize,
        to: Target,
        bytes: usize,
    },
    Down {
        link: usize,
    },
    Up {
        link: usize,
    },
    /// The switches update their routes for the links that are up.
    Reroute,
    Reset {
        switch: usize,
    },
    Slow {
        lane: usize,
        ns: u64,
    },
    Withhold {
        lane: usize,
        withhold: bool,
    },
    Chances {
        lane: usize,
        chances: Chances,
    },
    /// Sets the priority of the frames between two N_Ports.
    Prefer {
        from: usize,
        to: usize,
        priority: Priority,
    },
    Quarantine {
        nport: usize,
        starts: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    NPort(usize),
    /// An unassigned address of this switch.
    Nobody(usize),
    Controller(usize),
    NameServer,
}

fn rate() -> impl Strategy<Value = LineRate> {
    prop::sample::select(vec![
        LineRate::Fc1,
        LineRate::Fc2,
        LineRate::Fc2,
        LineRate::Fc4,
        LineRate::Fc10,
        LineRate::Fc32,
    ])
}

fn switch() -> impl Strategy<Value = SwitchCase> {
    let queueing = prop::sample::select(vec![Queueing::Fifo, Queueing::Any, Queueing::Voq]);
    let arbitration = prop::sample::select(vec![Arbitration::RoundRobin, Arbitration::OldestFirst]);
    let bandwidth = prop::option::of(1_000_000_000u64..60_000_000_000);
    let crossbar =
        (50u32..400, bandwidth, 1u16..4).prop_map(|(speedup_percent, bandwidth_bit_per_s, egress_frames)| {
            CrossbarLimits { speedup_percent, bandwidth_bit_per_s, egress_frames }
        });
    let all = (queueing, arbitration, crossbar, any::<bool>(), 0u64..2_000);
    all.prop_map(|(queueing, arbitration, crossbar, cut_through, latency_ns)| SwitchCase {
        queueing,
        arbitration,
        crossbar,
        cut_through,
        latency_ns,
    })
}

fn nport(switches: usize, faults: bool) -> impl Strategy<Value = NPortCase> {
    let light = prop_oneof![Just(250u64), 5u64..60_000];
    let slow = u32::from(faults);
    let empties = prop_oneof![4 => Just(0u64), 3 * slow => 1u64..50_000, slow => 1u64..2_000_000];
    (0..switches, rate(), light, [1u32..6, 1u32..6], empties).prop_map(
        |(switch, rate, light_ns, credits, empties_after_ns)| NPortCase {
            switch,
            rate,
            light_ns,
            credits,
            empties_after_ns,
        },
    )
}

fn data() -> impl Strategy<Value = Action> {
    let to = any::<u8>().prop_map(|to| Target::NPort(to.into()));
    (any::<u8>(), to, 1u32..20_000).prop_map(|(from, to, bytes)| Action::Data { from: from.into(), to, bytes })
}

fn target() -> impl Strategy<Value = Target> {
    (0u8..6, any::<u8>()).prop_map(|(kind, number)| match kind {
        0 => Target::Nobody(number.into()),
        1 => Target::Controller(number.into()),
        2 => Target::NameServer,
        _ => Target::NPort(number.into()),
    })
}

fn control() -> impl Strategy<Value = Action> {
    let bytes = prop_oneof![3 => 0usize..200, 1 => 0usize..9_000];
    (any::<u8>(), prop::option::weighted(0.4, any::<u8>()), target(), bytes).prop_map(|(from, port, to, bytes)| {
        match port {
            None => Action::Message { from: from.into(), to, bytes },
            Some(port) => Action::FromSwitch { switch: from.into(), port: port.into(), to, bytes },
        }
    })
}

fn fault() -> impl Strategy<Value = Action> {
    let number = || any::<u8>().prop_map(usize::from);
    let chance = || prop::sample::select(vec![0.0, 0.05, 0.3]);
    let chances = (chance(), chance(), chance()).prop_map(|(frame_loss, crc_errors, r_rdy_loss)| Chances {
        frame_loss,
        crc_errors,
        r_rdy_loss,
    });
    prop_oneof![
        3 => number().prop_map(|link| Action::Down { link }),
        6 => number().prop_map(|link| Action::Up { link }),
        3 => Just(Action::Reroute),
        1 => number().prop_map(|switch| Action::Reset { switch }),
        2 => (number(), prop_oneof![1 => Just(0u64), 3 => 1u64..30_000]).prop_map(|(lane, ns)| Action::Slow { lane, ns }),
        2 => (number(), any::<bool>()).prop_map(|(lane, withhold)| Action::Withhold { lane, withhold }),
        4 => (number(), chances).prop_map(|(lane, chances)| Action::Chances { lane, chances }),
    ]
}

/// Virtual channels of the links between switches.
fn channels() -> impl Strategy<Value = Vec<(u8, u16)>> {
    let all: Vec<u8> = Priority::ALL.into_iter().flat_map(Priority::channels).collect();
    let some = prop::sample::subsequence(all, 0..7).prop_flat_map(|numbers| {
        let shares = prop::collection::vec(1u16..4, numbers.len());
        shares.prop_map(move |shares| numbers.iter().copied().zip(shares).collect())
    });
    prop_oneof![1 => Just(Vec::new()), 3 => some]
}

fn priority() -> impl Strategy<Value = Action> {
    let number = || any::<u8>().prop_map(usize::from);
    let priority = prop::sample::select(Priority::ALL.to_vec());
    prop_oneof![
        1 => (number(), number(), priority).prop_map(|(from, to, priority)| Action::Prefer { from, to, priority }),
        3 => (number(), any::<bool>()).prop_map(|(nport, starts)| Action::Quarantine { nport, starts }),
    ]
}

fn actions(faults: bool) -> impl Strategy<Value = Vec<(u64, Action)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..20_000, 1 => 0u64..2_000_000];
    let action = prop_oneof![12 => data(), 4 => control(), 8 => priority(), if faults { 8 } else { 0 } => fault()];
    prop::collection::vec((gap, action), 1..80)
}

/// Generates cases. Half of them have no faults and no timeouts.
pub fn case() -> impl Strategy<Value = Case> {
    let light = || prop_oneof![Just(250u64), 5u64..60_000];
    let timeout = |faults: bool, long: std::ops::Range<u64>| {
        let time = prop_oneof![5_000u64..200_000, long];
        prop::option::weighted(0.8, time).prop_map(move |time| time.filter(|_| faults))
    };
    // Virtual channels need virtual output queues at both ends of a link.
    let queueing = prop::option::of(Just(Queueing::Voq));
    (1usize..5, 2usize..8, any::<bool>(), queueing).prop_flat_map(move |(switches, nports, faults, queueing)| {
        let isl = (0..switches, 0..switches, rate(), light(), [1u32..12, 1u32..12], any::<bool>());
        let choices = vec![
            IslChoice::Ingress,
            IslChoice::Spray,
            IslChoice::LeastLoaded,
            IslChoice::Exchange,
            IslChoice::DevicePair,
        ];
        (
            prop::collection::vec(switch().prop_map(move |switch| switch.with(queueing)), switches),
            prop::collection::vec(isl, 0..8),
            prop::collection::vec(nport(switches, faults), nports),
            channels(),
            prop::sample::select(choices),
            (prop::sample::select(vec![IslHash::Salted, IslHash::Plain]), prop::sample::select(vec![0, 0, 1, 2, 3])),
            timeout(faults, 200_000..2_000_000),
            timeout(faults, 200_000..4_000_000),
            actions(faults),
        )
            .prop_map(
                |(switches, isls, nports, channels, isl_choice, (isl_hash, bb_sc_n), hold_time, e_d_tov, actions)| {
                    Case {
                        switches,
                        isls,
                        nports,
                        channels,
                        isl_choice,
                        isl_hash,
                        bb_sc_n,
                        hold_time,
                        e_d_tov,
                        actions,
                    }
                },
            )
    })
}
