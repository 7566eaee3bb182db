//! Random networks, and what happens in them.

use crate::plain::Chances;
use proptest::prelude::*;
use sanloom_core::config::{Arbitration, IslChoice, LineRate, Queueing};

/// A network and what happens in it.
#[derive(Clone, Debug)]
pub struct Case {
    pub switches: Vec<SwitchCase>,
    /// Switches at the ends, rate, ns of light, credits both ways, whether it shares a bundle with the one before.
    pub isls: Vec<(usize, usize, LineRate, u64, [u32; 2], bool)>,
    pub nports: Vec<NPortCase>,
    pub isl_choice: IslChoice,
    /// In ns; none if it never passes.
    pub hold_time: Option<u64>,
    pub e_d_tov: Option<u64>,
    /// Time in ns since the one before, and what happens then.
    pub acts: Vec<(u64, Act)>,
}

#[derive(Clone, Copy, Debug)]
pub struct SwitchCase {
    pub queueing: Queueing,
    pub arbitration: Arbitration,
    pub cut_through: bool,
    pub latency_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct NPortCase {
    pub switch: usize,
    pub rate: LineRate,
    pub light_ns: u64,
    pub credits: [u32; 2],
    pub empties_after_ns: u64,
}

/// Links, lanes, switches and ports by numbers that are taken modulo how many there are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Act {
    /// A sequence of so many bytes.
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
    /// The switches learn which links are up.
    Reroute,
    Reset {
        switch: usize,
    },
    Slow {
        lane: usize,
        ns: u64,
    },
    Keep {
        lane: usize,
        keep: bool,
    },
    Chances {
        lane: usize,
        chances: Chances,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    NPort(usize),
    /// An address of this switch that nobody has.
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
    (queueing, arbitration, any::<bool>(), 0u64..2_000).prop_map(|(queueing, arbitration, cut_through, latency_ns)| {
        SwitchCase { queueing, arbitration, cut_through, latency_ns }
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

fn data() -> impl Strategy<Value = Act> {
    let to = any::<u8>().prop_map(|to| Target::NPort(to.into()));
    (any::<u8>(), to, 1u32..20_000).prop_map(|(from, to, bytes)| Act::Data { from: from.into(), to, bytes })
}

fn target() -> impl Strategy<Value = Target> {
    (0u8..6, any::<u8>()).prop_map(|(kind, number)| match kind {
        0 => Target::Nobody(number.into()),
        1 => Target::Controller(number.into()),
        2 => Target::NameServer,
        _ => Target::NPort(number.into()),
    })
}

fn control() -> impl Strategy<Value = Act> {
    let bytes = prop_oneof![3 => 0usize..200, 1 => 0usize..9_000];
    (any::<u8>(), prop::option::weighted(0.4, any::<u8>()), target(), bytes).prop_map(|(from, port, to, bytes)| {
        match port {
            None => Act::Message { from: from.into(), to, bytes },
            Some(port) => Act::FromSwitch { switch: from.into(), port: port.into(), to, bytes },
        }
    })
}

fn fault() -> impl Strategy<Value = Act> {
    let number = || any::<u8>().prop_map(usize::from);
    let chance = || prop::sample::select(vec![0.0, 0.05, 0.3]);
    let chances = (chance(), chance(), chance()).prop_map(|(frame_loss, crc_errors, r_rdy_loss)| Chances {
        frame_loss,
        crc_errors,
        r_rdy_loss,
    });
    prop_oneof![
        3 => number().prop_map(|link| Act::Down { link }),
        6 => number().prop_map(|link| Act::Up { link }),
        3 => Just(Act::Reroute),
        1 => number().prop_map(|switch| Act::Reset { switch }),
        2 => (number(), prop_oneof![1 => Just(0u64), 3 => 1u64..30_000]).prop_map(|(lane, ns)| Act::Slow { lane, ns }),
        2 => (number(), any::<bool>()).prop_map(|(lane, keep)| Act::Keep { lane, keep }),
        4 => (number(), chances).prop_map(|(lane, chances)| Act::Chances { lane, chances }),
    ]
}

fn acts(faults: bool) -> impl Strategy<Value = Vec<(u64, Act)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..20_000, 1 => 0u64..2_000_000];
    let act = prop_oneof![12 => data(), 4 => control(), if faults { 8 } else { 0 } => fault()];
    prop::collection::vec((gap, act), 1..80)
}

/// Half of the cases are without faults and without an end to any patience.
pub fn case() -> impl Strategy<Value = Case> {
    let light = || prop_oneof![Just(250u64), 5u64..60_000];
    let patience = |faults: bool, long: std::ops::Range<u64>| {
        let time = prop_oneof![5_000u64..200_000, long];
        prop::option::weighted(0.8, time).prop_map(move |time| time.filter(|_| faults))
    };
    (1usize..5, 2usize..8, any::<bool>()).prop_flat_map(move |(switches, nports, faults)| {
        let isl = (0..switches, 0..switches, rate(), light(), [1u32..6, 1u32..6], any::<bool>());
        let choices = vec![IslChoice::Ingress, IslChoice::Spray, IslChoice::Exchange, IslChoice::DevicePair];
        (
            prop::collection::vec(switch(), switches),
            prop::collection::vec(isl, 0..8),
            prop::collection::vec(nport(switches, faults), nports),
            prop::sample::select(choices),
            patience(faults, 200_000..2_000_000),
            patience(faults, 200_000..4_000_000),
            acts(faults),
        )
            .prop_map(|(switches, isls, nports, isl_choice, hold_time, e_d_tov, acts)| Case {
                switches,
                isls,
                nports,
                isl_choice,
                hold_time,
                e_d_tov,
                acts,
            })
    })
}
