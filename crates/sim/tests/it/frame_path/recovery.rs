//! Credit recovery on virtual channels: lost frames and R_RDYs, counted by hand.

use super::case::{Action, Case, NPortCase, SwitchCase, Target};
use super::plain::{Chances, Goal};
use super::{Both, Comparison};
use sanloom_fc::config::{Arbitration, CrossbarLimits, IslChoice, IslHash, LineRate, Priority, Queueing};

/// Lane from the first switch to the second one, after the two lanes of each N_Port.
const ISL: usize = 8;

/// Numbers of the channels of medium and high priority.
const MEDIUM: u8 = 2;
const HIGH: u8 = 10;

/// Two switches with an ISL whose channels of medium and high priority have three credits each.
/// N_Port 0 sends to N_Port 2 with high priority, and N_Port 1 to N_Port 3 with medium priority.
/// State changes follow after eight frames or R_RDYs.
fn two_switches() -> Case {
    let switch = SwitchCase {
        queueing: Queueing::Voq,
        arbitration: Arbitration::RoundRobin,
        crossbar: CrossbarLimits::default(),
        cut_through: false,
        latency_ns: 0,
    };
    let nport = |switch| NPortCase { switch, rate: LineRate::Fc4, light_ns: 250, credits: [5, 5], empties_after_ns: 0 };
    Case {
        switches: vec![switch; 2],
        isls: vec![(0, 1, LineRate::Fc4, 250, [7, 7], false)],
        nports: [0, 0, 1, 1].map(nport).into(),
        channels: vec![(MEDIUM, 3), (HIGH, 3)],
        isl_choice: IslChoice::Ingress,
        isl_hash: IslHash::Plain,
        bb_sc_n: 3,
        hold_time: None,
        e_d_tov: None,
        actions: Vec::new(),
    }
}

/// Both engines, which are compared at each step of 1 ms.
struct Steps(Comparison);

impl Steps {
    fn new() -> Steps {
        let both = Both::of(&two_switches());
        let mut steps = Steps(Comparison::new(both));
        steps.0.execute(Action::Prefer { from: 0, to: 2, priority: Priority::High });
        steps
    }

    fn lose(&mut self, frame_loss: f64, r_rdy_loss: f64) {
        self.0.execute(Action::Chances { lane: ISL, chances: Chances { frame_loss, crc_errors: 0.0, r_rdy_loss } });
    }

    /// Sends full frames from an N_Port to the one at the other switch. Returns the number of
    /// frames delivered to N_Ports 2 and 3 since the beginning.
    fn send(&mut self, from: usize, frames: u32) -> [usize; 2] {
        self.0.execute(Action::Data { from, to: Target::NPort(from + 2), bytes: frames * 2_048 });
        let until = self.0.both.plain.now + 1_000_000_000;
        self.0.run(until).unwrap_or_else(|error| panic!("{error}"));
        [2, 3].map(|nport| self.0.delivered.iter().filter(|(_, goal, _)| *goal == Goal::NPort(nport)).count())
    }

    /// Credits of the channels of high and medium priority, with those that have returned.
    fn credits(&self) -> [u32; 2] {
        let channels = self.0.both.fast.fc.channels(ISL as u32).expect("channels").list();
        [HIGH, MEDIUM].map(|number| {
            let channel = channels.iter().find(|channel| channel.number == number).expect("the channel");
            channel.credits + channel.returning()
        })
    }

    fn recovered(&self) -> u64 {
        self.0.both.fast.fc.lanes()[ISL].state_changes.recovered
    }
}

#[test]
fn credits_of_lost_frames_return_to_their_channel_after_eight_frames_of_the_link() {
    let mut steps = Steps::new();
    steps.lose(1.0, 0.0);
    assert_eq!(steps.send(0, 3), [0, 0], "frames 1 to 3 are lost");
    steps.lose(0.0, 0.0);
    assert_eq!(steps.credits(), [0, 3]);
    assert_eq!(steps.send(0, 2), [0, 0], "two frames wait for a credit of the channel");
    assert_eq!(steps.send(1, 4), [0, 4], "frames 4 to 7 use the other channel");
    assert_eq!((steps.credits(), steps.recovered()), ([0, 3], 0));
    assert_eq!(steps.send(1, 1), [2, 5], "BB_SCs follows frame 8, and frees frames 9 and 10");
    assert_eq!((steps.credits(), steps.recovered()), ([3, 3], 3));
}

#[test]
fn credits_of_lost_r_rdys_return_to_their_channel_after_eight_r_rdys_of_the_link() {
    let mut steps = Steps::new();
    steps.lose(0.0, 1.0);
    assert_eq!(steps.send(0, 3), [3, 0], "R_RDYs 1 to 3 are lost");
    assert_eq!(steps.send(1, 1), [3, 1], "so is R_RDY 4, of the other channel");
    steps.lose(0.0, 0.0);
    assert_eq!(steps.credits(), [0, 2]);
    assert_eq!(steps.send(0, 1), [3, 1], "a frame waits for a credit of the channel");
    assert_eq!(steps.send(1, 3), [3, 4], "R_RDYs 5 to 7 return on the other channel");
    assert_eq!((steps.credits(), steps.recovered()), ([0, 2], 0));
    assert_eq!(steps.send(1, 1), [4, 5], "BB_SCr follows R_RDY 8 and restores the credits of R_RDYs 1 to 4");
    assert_eq!((steps.credits(), steps.recovered()), ([3, 3], 4));
}

#[test]
fn frames_and_r_rdys_of_a_lost_frame_count_once() {
    let mut steps = Steps::new();
    steps.lose(1.0, 0.0);
    assert_eq!(steps.send(0, 2), [0, 0], "frames 1 and 2 are lost");
    steps.lose(0.0, 0.0);
    assert_eq!(steps.send(1, 5), [0, 5], "frames 3 to 7, and R_RDYs 1 to 5");
    steps.lose(0.0, 1.0);
    // The receiver returns the credits of frames 1 and 2 with R_RDYs 6 and 7, and that of frame 8
    // with R_RDY 8. All of them are lost, and so is BB_SCr after R_RDY 8.
    assert_eq!(steps.send(0, 1), [1, 5], "BB_SCs follows frame 8");
    assert_eq!((steps.credits(), steps.recovered()), ([0, 3], 2));
    steps.lose(0.0, 0.0);
    assert_eq!(steps.send(1, 7), [1, 12], "R_RDYs 9 to 15");
    assert_eq!((steps.credits(), steps.recovered()), ([0, 3], 2));
    assert_eq!(steps.send(1, 1), [1, 13], "BB_SCr follows R_RDY 16");
    assert_eq!((steps.credits(), steps.recovered()), ([3, 3], 5));
}
