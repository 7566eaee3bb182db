//! Sequence of commands that reads the properties of a disk before it is used.

use super::verdict::{Verdict, verdict};
use super::{Data, Disk, End, Error, ErrorKind, Output, Properties, State, cdb};
use crate::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::vpd::page;

/// Probe in progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Probe {
    step: Step,
    /// Number of the command in flight.
    command: Option<u64>,
    /// Time at which the step is repeated; `None` while its command is in flight.
    retry_at: Option<Instant>,
    /// Time of the first failed command of this step.
    since: Option<Instant>,
    tries: u32,
    /// Vital product data pages still to be read, in reverse order.
    pages: Vec<u8>,
    found: Properties,
}

/// Step of the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    TestUnitReady,
    Inquiry,
    SupportedPages,
    Page(u8),
    Capacity16,
    Capacity10,
    Mode6,
    Mode10,
}

/// Allocation lengths in bytes.
const INQUIRY_BYTES: u16 = 96;
const VPD_BYTES: u16 = 1024;
const CAPACITY_16_BYTES: u32 = 32;
const CAPACITY_10_BYTES: u32 = 8;
const MODE_6_BYTES: u16 = 192;
const MODE_10_BYTES: u16 = 512;

/// Number of unit attentions after which the command is repeated at once; later ones cause a delay.
const QUICK_TRIES: u32 = 8;
const FIRST_DELAY: Span = Span::from_ms(10);
const LONGEST_DELAY: Span = Span::from_secs(1);
/// Interval between probes of an unusable disk.
const SLOW_RETRY: Span = Span::from_secs(10);

/// Vital product data pages that are read if supported, in this order.
const PAGES: [u8; 5] =
    [page::IDENTIFICATION, page::SERIAL, page::BLOCK_LIMITS, page::BLOCK_CHARACTERISTICS, page::PROVISIONING];

impl Probe {
    fn new() -> Probe {
        // A disk counts as rotational unless page B1 reports otherwise.
        let found = Properties { rotational: true, ..Properties::default() };
        let step = Step::TestUnitReady;
        Probe { step, command: None, retry_at: None, since: None, tries: 0, pages: Vec::new(), found }
    }

    pub(super) fn waits_for(&self, id: u64) -> bool {
        self.command == Some(id)
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Processes the data of a step. Returns the next step, or `None` after the last one, or an
    /// error if the data are unusable.
    fn take(&mut self, data: &[u8]) -> Result<Option<Step>, ErrorKind> {
        let found = &mut self.found;
        Ok(match self.step {
            Step::TestUnitReady => Some(Step::Inquiry),
            Step::Inquiry if found.read_inquiry(data) => Some(Step::SupportedPages),
            Step::SupportedPages => {
                let listed = data.get(4..).unwrap_or_default();
                self.pages = PAGES.into_iter().rev().filter(|page| listed.contains(page)).collect();
                Some(self.next_page())
            }
            Step::Page(page) => {
                found.read_vpd(page, data);
                Some(self.next_page())
            }
            Step::Capacity16 if found.read_capacity_16(data) => Some(Step::Mode6),
            Step::Capacity10 if found.read_capacity_10(data) => Some(Step::Mode6),
            Step::Mode6 if found.read_mode(data, false) => None,
            Step::Mode10 if found.read_mode(data, true) => None,
            Step::Inquiry | Step::Capacity16 | Step::Capacity10 => return Err(ErrorKind::NotADisk),
            Step::Mode6 | Step::Mode10 => return Err(ErrorKind::NotSupported),
        })
    }

    fn next_page(&mut self) -> Step {
        self.pages.pop().map_or(Step::Capacity16, Step::Page)
    }

    /// Returns the step that follows a failed one, or an error if that step is indispensable.
    fn step_after_failure(&mut self, error: Error) -> Result<Option<Step>, Error> {
        let conflict = error.kind == ErrorKind::ReservationConflict;
        match self.step {
            Step::TestUnitReady if conflict || error.kind == ErrorKind::NotSupported => Ok(Some(Step::Inquiry)),
            Step::SupportedPages => Ok(Some(Step::Capacity16)),
            Step::Page(_) => Ok(Some(self.next_page())),
            Step::Capacity16 if error.kind == ErrorKind::NotSupported => Ok(Some(Step::Capacity10)),
            Step::Mode6 => Ok(Some(Step::Mode10)),
            Step::Mode10 => {
                // A disk without the caching page may have a cache.
                self.found.write_cache = true;
                Ok(None)
            }
            Step::TestUnitReady | Step::Inquiry | Step::Capacity16 | Step::Capacity10 => Err(error),
        }
    }
}

impl Disk {
    /// Starts the probe from the first step.
    pub(super) fn probe(&mut self) {
        self.state = State::Probing(Box::new(Probe::new()));
        self.probe_step();
    }

    /// Sends the command of the current step.
    pub(super) fn probe_step(&mut self) {
        let State::Probing(probe) = &mut self.state else {
            return;
        };
        probe.retry_at = None;
        let (cdb, max_bytes) = match probe.step {
            Step::TestUnitReady => (Cdb::TestUnitReady.to_bytes(), 0),
            Step::Inquiry => (cdb::inquiry(None, INQUIRY_BYTES), INQUIRY_BYTES.into()),
            Step::SupportedPages => (cdb::inquiry(Some(page::SUPPORTED), VPD_BYTES), VPD_BYTES.into()),
            Step::Page(page) => (cdb::inquiry(Some(page), VPD_BYTES), VPD_BYTES.into()),
            Step::Capacity16 => {
                (Cdb::ReadCapacity16 { allocation_len: CAPACITY_16_BYTES }.to_bytes(), CAPACITY_16_BYTES)
            }
            Step::Capacity10 => (Cdb::ReadCapacity10.to_bytes(), CAPACITY_10_BYTES),
            Step::Mode6 => (cdb::mode_sense(false, MODE_6_BYTES), MODE_6_BYTES.into()),
            Step::Mode10 => (cdb::mode_sense(true, MODE_10_BYTES), MODE_10_BYTES.into()),
        };
        let data = if max_bytes == 0 { Data::None } else { Data::In { max_bytes } };
        let id = self.command(cdb, data);
        if let State::Probing(probe) = &mut self.state {
            probe.command = Some(id);
        }
    }

    pub(super) fn on_probe_reply(&mut self, now: Instant, end: End) {
        let State::Probing(probe) = &mut self.state else {
            return;
        };
        probe.command = None;
        let next = match verdict(&end) {
            Verdict::Good => {
                let data = match &end {
                    End::Status { data, .. } => &data[..],
                    _ => &[],
                };
                match probe.take(data) {
                    Ok(next) => Ok(next),
                    Err(kind) => probe.step_after_failure(Error { kind, sense: None }),
                }
            }
            Verdict::UnitAttention(_) if probe.tries < QUICK_TRIES => {
                self.counters.unit_attentions += 1;
                probe.tries += 1;
                return self.probe_step();
            }
            Verdict::UnitAttention(code) => {
                let sense = Some((sanloom_wire::sense::SenseKey::UNIT_ATTENTION, code));
                return self.probe_later(now, Error { kind: ErrorKind::NotReady, sense });
            }
            Verdict::Retry(error) | Verdict::Delay { error, .. } => return self.probe_later(now, error),
            Verdict::Unaborted => {
                self.counters.timeouts += 1;
                return self.reset();
            }
            Verdict::PathGone => return self.path_down(now),
            Verdict::Fail(error) => probe.step_after_failure(error),
        };
        match next {
            Ok(Some(step)) => {
                if let State::Probing(probe) = &mut self.state {
                    probe.step = step;
                    probe.tries = 0;
                    probe.since = None;
                }
                self.probe_step();
            }
            Ok(None) => self.probed(now),
            // A disk may become ready without notice.
            Err(error) if error.kind == ErrorKind::NotReady => self.probe_later(now, error),
            Err(error) => self.mark_unusable(now, error),
        }
    }

    /// Repeats the current step after a delay.
    fn probe_later(&mut self, now: Instant, error: Error) {
        let busy_timeout = self.config.busy_timeout;
        let State::Probing(probe) = &mut self.state else {
            return;
        };
        let waited = now.since(*probe.since.get_or_insert(now));
        if waited >= busy_timeout {
            return self.mark_unusable(now, error);
        }
        probe.retry_at = Some(now + waited.max(FIRST_DELAY).min(LONGEST_DELAY));
    }

    /// Fails all requests and restarts the probe later.
    fn mark_unusable(&mut self, now: Instant, error: Error) {
        self.give_up(error);
        self.state = State::Probing(Box::new(Probe { retry_at: Some(now + SLOW_RETRY), ..Probe::new() }));
    }

    /// Completes the probe.
    fn probed(&mut self, now: Instant) {
        let State::Probing(probe) = std::mem::replace(&mut self.state, State::Ready) else {
            return;
        };
        let found = Box::new(probe.found);
        let names = self.properties.as_ref().and_then(|old| old.designator.as_ref()).zip(found.designator.as_ref());
        let name = || found.designator.as_ref().map(ToString::to_string);
        let unexpected = self.expected.as_deref().is_some_and(|expected| name().as_deref() != Some(expected));
        if unexpected || names.is_some_and(|(old, new)| old != new) {
            return self.mark_unusable(now, Error { kind: ErrorKind::OtherDisk, sense: None });
        }
        let news = self.unusable.is_some() || self.lost_deadline.is_some() || self.properties.as_ref() != Some(&found);
        self.unusable = None;
        self.lost_deadline = None;
        if news {
            self.outputs.push_back(Output::Ready(found.clone()));
        }
        self.properties = Some(found);
    }
}
