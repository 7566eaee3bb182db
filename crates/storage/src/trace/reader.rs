//! Reader of traces in every format.

use super::detect::detect;
use super::error::{Place, TraceError};
use super::fio::Fio;
use super::format::{Format, Settings};
use super::input::Input;
use super::order::Order;
use super::parse::{MAX_END, RawRequest};
use super::request::TraceRequest;
use super::{block, columns, vscsi};
use regex::bytes::CaptureLocations;
use std::collections::HashMap;
use std::io::Read;

/// Largest number of devices of a trace. The names together have at most 64 bytes for each.
pub const MAX_DEVICES: usize = 1 << 16;

/// Longest trace, in days: 2^64 ps.
const MAX_DAYS: u64 = 213;

/// Devices in the order of their first requests.
#[derive(Debug, Default)]
struct Devices {
    names: Vec<String>,
    numbers: HashMap<Vec<u8>, u32>,
    bytes: usize,
    /// Device of the previous request.
    last: Option<(Vec<u8>, u32)>,
}

impl Devices {
    fn number(&mut self, place: Place, name: &[u8]) -> Result<u32, TraceError> {
        if let Some((last, number)) = &self.last
            && last == name
        {
            return Ok(*number);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                self.bytes += name.len();
                if self.names.len() >= MAX_DEVICES || self.bytes > MAX_DEVICES * 64 {
                    return Err(TraceError::Devices { place, limit: self.names.len() });
                }
                let number = self.names.len() as u32;
                let text = String::from_utf8_lossy(name).into_owned();
                self.names.push(if text.is_empty() { "0".to_owned() } else { text });
                self.numbers.insert(name.to_vec(), number);
                number
            }
        };
        self.last = Some((name.to_vec(), number));
        Ok(number)
    }
}

/// State of the format between two lines.
enum State {
    None,
    Fio(Fio),
    /// Arrival of the next request of DiskSim validate.
    Validate(u128),
    Pattern(CaptureLocations),
}

/// Requests of a trace in the order of their arrival.
///
/// After an error, the iterator ends. Requests in front of the error are returned before it.
pub struct TraceReader<'a> {
    input: Input<'a>,
    format: Format,
    settings: Settings,
    state: State,
    order: Order,
    devices: Devices,
    /// Name of the device of one request.
    device: Vec<u8>,
    /// Time of arrival 0; none before the first request.
    start_ps: Option<u128>,
    returned: u64,
    at_end: bool,
    error: Option<TraceError>,
}

impl std::fmt::Debug for TraceReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader").field("format", &self.format).field("number", &self.input.number()).finish()
    }
}

impl<'a> TraceReader<'a> {
    /// Opens a trace, compressed or not.
    ///
    /// # Errors
    /// If the settings contradict each other, the beginning cannot be read, or no format was named
    /// and not exactly one fits the first lines.
    pub fn new(source: impl Read + Send + 'a, settings: &Settings) -> Result<TraceReader<'a>, TraceError> {
        settings.check()?;
        let input = Input::new(source)?;
        let format = match (settings.format, &settings.pattern) {
            (Some(format), _) => format,
            (None, Some(_)) => Format::Regex,
            (None, None) => detect(input.head())?,
        };
        let state = match (format, &settings.pattern) {
            (Format::Fio2, _) => State::Fio(Fio::new(2)),
            (Format::Fio3, _) => State::Fio(Fio::new(3)),
            (Format::Validate, _) => State::Validate(0),
            (Format::Regex, Some(pattern)) => State::Pattern(pattern.locations()),
            _ => State::None,
        };
        Ok(TraceReader {
            input,
            format,
            settings: settings.clone(),
            state,
            order: Order::new(settings.reorder),
            devices: Devices::default(),
            device: Vec::new(),
            start_ps: None,
            returned: 0,
            at_end: false,
            error: None,
        })
    }

    /// The format, named or detected.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Names of the devices so far, indexed by [`TraceRequest::device`]. A format without devices
    /// has one device with the name 0.
    pub fn devices(&self) -> &[String] {
        &self.devices.names
    }

    /// Number of lines or binary records read so far.
    pub fn records(&self) -> u64 {
        self.input.number()
    }

    /// Reads one line or record. Returns false at the end of the input.
    fn step(&mut self) -> Result<bool, TraceError> {
        self.device.clear();
        if self.format.is_binary() {
            return self.step_record();
        }
        let Some((place, line)) = self.input.line()? else { return Ok(false) };
        if line.trim_ascii().is_empty() {
            return Ok(true);
        }
        let device = &mut self.device;
        let request = match (self.format, &mut self.state) {
            (Format::Disksim, _) => columns::disksim(place, line, device)?,
            (Format::Validate, State::Validate(next)) => columns::validate(place, line, next)?,
            (Format::Spc, _) => columns::spc(place, line, device)?,
            (Format::Msr, _) => columns::msr(place, line, device)?,
            (Format::Alibaba, _) => columns::alibaba(place, line, device)?,
            (Format::Tencent, _) => columns::tencent(place, line, device)?,
            (Format::Mqsim, _) => columns::mqsim(place, line, self.settings.mqsim_unit_ps, device)?,
            (Format::Fiu, _) => columns::fiu(place, line, device)?,
            (_, State::Fio(fio)) => match fio.parse(place, line, device)? {
                Some(request) => request,
                None => return Ok(true),
            },
            (_, State::Pattern(locations)) => {
                let Some(pattern) = &self.settings.pattern else { return Ok(false) };
                match pattern.parse(place, line, locations)? {
                    Some((request, name)) => {
                        device.extend_from_slice(name);
                        request
                    }
                    None => return Ok(true),
                }
            }
            _ => {
                let requests = block::blkparse(place, line, self.settings.event, device)?;
                self.push_all(place, requests)?;
                return Ok(true);
            }
        };
        self.push_all(place, [Some(request), None])?;
        Ok(true)
    }

    fn step_record(&mut self) -> Result<bool, TraceError> {
        let (length, version) = match self.format {
            Format::Vscsi1 => (vscsi::RECORD_1, 1),
            Format::Vscsi2 => (vscsi::RECORD_2, 2),
            _ => (block::RECORD, 0),
        };
        let Some((place, record)) = self.input.record(length)? else { return Ok(false) };
        let requests = match version {
            0 => {
                let event = block::blktrace(place, record, self.settings.event, &mut self.device)?;
                self.input.skip(event.behind)?;
                event.requests
            }
            _ => [vscsi::parse(place, record, version)?, None],
        };
        self.push_all(place, requests)?;
        Ok(true)
    }

    fn push_all(&mut self, place: Place, requests: block::Requests) -> Result<(), TraceError> {
        for mut request in requests.into_iter().flatten() {
            let end = request.offset_bytes.checked_add(request.length_bytes).filter(|end| *end <= MAX_END);
            if end.is_none() {
                let length = request.length_bytes.to_string();
                return Err(TraceError::value(place, "length", length.as_bytes(), "an end of at most 2^63 bytes"));
            }
            request.device = self.devices.number(place, &self.device)?;
            self.order.push(place, request)?;
        }
        Ok(())
    }

    /// Relates the time of a request to the start of the trace.
    fn finished(&mut self, request: RawRequest, place: Place) -> Result<TraceRequest, TraceError> {
        let first_ps = if self.format.has_absolute_times() { request.time_ps } else { 0 };
        let start_ps = *self.start_ps.get_or_insert(first_ps);
        let arrival_ps = u64::try_from(request.time_ps - start_ps.min(request.time_ps))
            .map_err(|_| TraceError::TooLong { place, days: MAX_DAYS })?;
        self.returned += 1;
        Ok(TraceRequest {
            arrival_ps,
            device: request.device,
            op: request.op,
            offset_bytes: request.offset_bytes,
            length_bytes: request.length_bytes,
            response_ps: request.response_ps,
            think_ps: request.think_ps,
        })
    }

    /// Error of a trace of the block layer in which the event does not occur.
    fn without_event(&self) -> Option<TraceError> {
        let has_events = matches!(self.format, Format::Blktrace | Format::Blkparse);
        let (records, event) = (self.input.number(), self.settings.event.word());
        (has_events && self.returned == 0 && records > 0).then_some(TraceError::NoEvent { records, event })
    }
}

impl Iterator for TraceReader<'_> {
    type Item = Result<TraceRequest, TraceError>;

    fn next(&mut self) -> Option<Result<TraceRequest, TraceError>> {
        while !self.at_end && !self.order.is_full() {
            match self.step() {
                Ok(true) => {}
                Ok(false) => self.at_end = true,
                Err(error) => (self.at_end, self.error) = (true, Some(error)),
            }
        }
        let Some((request, place)) = self.order.pop() else {
            let error = self.error.take().or_else(|| self.without_event())?;
            // The count keeps the error from being returned again.
            self.returned += 1;
            return Some(Err(error));
        };
        let finished = self.finished(request, place);
        if finished.is_err() {
            (self.at_end, self.error) = (true, None);
            while self.order.pop().is_some() {}
        }
        Some(finished)
    }
}
