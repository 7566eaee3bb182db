//! The driver of a protocol machine: [`Driven`] owns the machine, writes its inputs and outputs to
//! the recording, and caches its deadline.

use crate::record::{InputValue, Machine, Recorder};
use sanloom_fc::dcbx::{self, Dcbx};
use sanloom_fc::fabric_switch::{self, FabricSwitch};
use sanloom_fc::fip::fcf::{self, Fcf};
use sanloom_fc::fip::vn2vn::{self, Vn2vn};
use sanloom_scsi::time::Instant;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A protocol machine without I/O and without a clock.
pub trait SansIo {
    /// Input from the driver.
    type Input: Debug;
    /// Output for the driver.
    type Output: Debug;
    /// Processes one input.
    fn handle(&mut self, now: Instant, input: Self::Input);
    /// Returns the next output; `None` if there is none before the next input.
    fn poll_output(&mut self) -> Option<Self::Output>;
    /// Returns the time of the next time-out; `None` if no timer runs.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns the form of an input in a recording; `None` if it has none.
    fn recorded(input: &Self::Input) -> Option<InputValue>;
}

macro_rules! sans_io {
    ($machine:ty, $module:ident, $recorded:path) => {
        impl SansIo for $machine {
            type Input = $module::Input;
            type Output = $module::Output;

            fn handle(&mut self, now: Instant, input: $module::Input) {
                <$machine>::handle(self, now, input);
            }

            fn poll_output(&mut self) -> Option<$module::Output> {
                <$machine>::poll_output(self)
            }

            fn poll_timeout(&self) -> Option<Instant> {
                <$machine>::poll_timeout(self)
            }

            fn recorded(input: &$module::Input) -> Option<InputValue> {
                $recorded(input)
            }
        }
    };
}

sans_io!(FabricSwitch, fabric_switch, InputValue::of_switch);
sans_io!(Fcf, fcf, InputValue::of_fcf);
sans_io!(Vn2vn, vn2vn, InputValue::of_station);
sans_io!(Dcbx, dcbx, InputValue::of_agent);

/// The recording of an instance, shared by the drivers of all its machines. Nothing is written
/// before it is started.
#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<OnceLock<Mutex<Recorder>>>);

impl Recording {
    /// Starts the recording. A recording that runs goes on instead.
    pub fn start(&self, recorder: Recorder) {
        let _ = self.0.set(Mutex::new(recorder));
    }

    /// Returns whether the recording was started.
    pub fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    /// Describes the error at which the recording ended, with the remedy; `None` if it is complete
    /// or not started.
    pub fn incomplete(&self) -> Option<String> {
        let recorder = self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, error) = (recorder.path().display(), recorder.error()?);
        Some(format!("the recording {path} is not complete: {error}; free space, and start the lab again to record it"))
    }

    /// Writes buffered lines to the file.
    pub fn flush(&self) {
        self.with(Recorder::flush);
    }

    #[inline]
    fn with(&self, write: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = self.0.get() {
            write(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// A machine with its place in the recording and its deadline. It dereferences to the machine, to
/// read its state.
#[derive(Debug)]
pub struct Driven<M> {
    machine: M,
    id: Machine,
    recording: Recording,
    deadline: Option<Instant>,
}

impl<M: SansIo> Driven<M> {
    /// Drives a new machine, which is called `id` in the recording.
    pub fn new(machine: M, id: Machine, recording: &Recording) -> Driven<M> {
        let deadline = machine.poll_timeout();
        Driven { machine, id, recording: recording.clone(), deadline }
    }

    /// Passes one input to the machine. [`poll_output`](Self::poll_output) is to be drained
    /// afterwards.
    pub fn handle(&mut self, now: Instant, input: M::Input) {
        self.recording.with(|recorder| recorder.input(now, self.id, M::recorded(&input), &input));
        self.machine.handle(now, input);
    }

    /// Returns the next output of the machine. Without one, the deadline is up to date.
    pub fn poll_output(&mut self) -> Option<M::Output> {
        let output = self.machine.poll_output();
        self.recording.with(|recorder| recorder.output(self.id, output.as_ref()));
        if output.is_none() {
            self.deadline = self.machine.poll_timeout();
        }
        output
    }

    /// The time of the next time-out, as of the last drain.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Changes the configuration of the machine. A recording does not show it.
    pub fn configure(&mut self, change: impl FnOnce(&mut M)) {
        change(&mut self.machine);
    }
}

impl<M> Deref for Driven<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}
