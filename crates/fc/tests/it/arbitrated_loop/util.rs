//! Runs of the fast engine.

use sanloom_fc::arbitrated_loop::{Loop, LoopConfig, LoopFrame, LoopTime, Output, Request, Signal, Tenancy};
use sanloom_wire::arbitrated_loop::{AlPa, Primitive};

/// A request with its time and port.
#[derive(Clone, Debug)]
pub struct Wish {
    pub time: LoopTime,
    pub port: usize,
    pub request: Request,
}

/// All results of a run of a loop with words of this duration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    pub word: LoopTime,
    pub frames: Vec<LoopFrame>,
    pub tenancies: Vec<Tenancy>,
    pub refused: Vec<(usize, u64)>,
    /// R_RDY, OPN and CLS with sender and time.
    pub signals: Vec<(LoopTime, usize, Primitive)>,
}

impl Results {
    pub fn drain(&mut self, engine: &mut Loop) {
        while let Some(output) = engine.poll_output() {
            match output {
                Output::Frame(frame) => self.frames.push(frame),
                Output::NoSuchPort { from, tag, .. } => self.refused.push((from, tag)),
                Output::Tenancy(tenancy) => self.tenancies.push(tenancy),
                Output::Signal(Signal { word: Primitive::Arb { .. }, .. }) => {}
                Output::Signal(Signal { from, word, count, sent, .. }) => {
                    let times = (0..count).map(|number| sent + self.word.times(number.into()));
                    self.signals.extend(times.map(|time| (time, from, word)));
                }
            }
        }
    }
}

pub fn pa(value: u8) -> AlPa {
    AlPa::new(value).expect("an AL_PA")
}

/// Runs all wishes, which are in the order of their times, until the loop is idle.
pub fn run(config: &LoopConfig, wishes: &[Wish]) -> Results {
    let mut engine = Loop::new(config.clone()).expect("a valid loop");
    engine.report_signals();
    let mut results = Results { word: config.rate.word(), ..Results::default() };
    for wish in wishes {
        while let Some(time) = engine.poll_timeout().filter(|time| *time < wish.time) {
            engine.handle_timeout(time);
        }
        assert!(engine.request(wish.time, wish.port, wish.request.clone()));
    }
    while let Some(time) = engine.poll_timeout() {
        engine.handle_timeout(time);
        results.drain(&mut engine);
    }
    results.drain(&mut engine);
    results.frames.sort_by_key(|frame| (frame.start, frame.from));
    results.signals.sort_by_key(|(time, from, _)| (*time, *from));
    results
}
