//! Input of a reader: decompression by magic bytes, and lines and records of bounded length.

use super::error::{Place, TraceError};
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// Longest line of a text format, in bytes: a path of 4,096 bytes, and numbers.
pub const MAX_LINE: usize = 16 << 10;

/// Bytes that the detection of the format sees. A line is longer than that in no text format.
pub(super) const PEEK: usize = 64 << 10;

/// First bytes of a member of gzip, RFC 1952 section 2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a frame of zstd, RFC 8878 section 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Largest window of a zstd frame, in bytes. Levels up to 19 need 8 MiB; `--long` needs more.
const MAX_WINDOW: u64 = 16 << 20;

/// Source of bytes, decompressed.
type Source<'a> = Box<dyn Read + Send + 'a>;

/// Lines or records of a trace.
pub(super) struct Input<'a> {
    bytes: Bytes<'a>,
    number: u64,
    /// The line or record.
    buffer: Vec<u8>,
}

/// Decompressed bytes. The detection of the format has read `head`, which is passed on from `at`.
struct Bytes<'a> {
    source: BufReader<Source<'a>>,
    head: Vec<u8>,
    at: usize,
    /// Error behind `head`.
    failed: Option<io::Error>,
}

impl Bytes<'_> {
    /// Bytes that are ready; none at the end.
    fn chunk(&mut self) -> io::Result<&[u8]> {
        if self.at < self.head.len() {
            return Ok(&self.head[self.at..]);
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.source.fill_buf(),
        }
    }

    fn consume(&mut self, length: usize) {
        if self.at < self.head.len() {
            self.at += length;
        } else {
            self.source.consume(length);
        }
    }
}

impl<'a> Input<'a> {
    /// Detects the compression and reads the beginning.
    pub(super) fn new(source: impl Read + Send + 'a) -> Result<Input<'a>, TraceError> {
        let error = |source| TraceError::Read { place: Place::Line(1), source };
        let mut source: Source<'a> = Box::new(source);
        let (magic, failed) = fill(&mut source, ZSTD.len());
        failed.map_or(Ok(()), |source| Err(error(source)))?;
        let source: Source<'a> = if magic.starts_with(&GZIP) {
            Box::new(MultiGzDecoder::new(BufReader::new(io::Cursor::new(magic).chain(source))))
        } else if magic == ZSTD {
            Box::new(Zstd::new(io::Cursor::new(magic).chain(source)))
        } else {
            Box::new(io::Cursor::new(magic).chain(source))
        };
        let mut source = BufReader::with_capacity(PEEK, source);
        let (head, failed) = fill(&mut source, PEEK);
        Ok(Input { bytes: Bytes { source, head, at: 0, failed }, number: 0, buffer: Vec::new() })
    }

    /// The first bytes of the trace, at most [`PEEK`], and all of it if there are fewer.
    pub(super) fn head(&self) -> &[u8] {
        &self.bytes.head
    }

    /// Number of lines or records read.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line without its end; none at the end of the input.
    pub(super) fn line(&mut self) -> Result<Option<(Place, &[u8])>, TraceError> {
        let place = Place::Line(self.number + 1);
        self.buffer.clear();
        loop {
            let chunk = match self.bytes.chunk() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(TraceError::Read { place, source }),
            };
            if chunk.is_empty() {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                break;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let (length, is_whole) = (part.len() + usize::from(end.is_some()), end.is_some());
            if self.buffer.len() + part.len() > MAX_LINE {
                return Err(TraceError::LongLine { place, limit: MAX_LINE });
            }
            self.buffer.extend_from_slice(part);
            self.bytes.consume(length);
            if is_whole {
                break;
            }
        }
        self.number += 1;
        let line = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        Ok(Some((place, line)))
    }

    /// Reads the next record of `length` bytes; none at the end of the input.
    pub(super) fn record(&mut self, length: usize) -> Result<Option<(Place, &[u8])>, TraceError> {
        let place = Place::Record(self.number + 1);
        self.buffer.clear();
        while self.buffer.len() < length {
            let missing = length - self.buffer.len();
            let taken = match self.bytes.chunk() {
                Ok([]) if self.buffer.is_empty() => return Ok(None),
                Ok([]) => return Err(TraceError::Truncated { place, found: self.buffer.len(), expected: length }),
                Ok(chunk) => {
                    let taken = chunk.len().min(missing);
                    self.buffer.extend_from_slice(&chunk[..taken]);
                    taken
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(TraceError::Read { place, source }),
            };
            self.bytes.consume(taken);
        }
        self.number += 1;
        Ok(Some((place, &self.buffer)))
    }

    /// Skips data behind a record.
    pub(super) fn skip(&mut self, length: usize) -> Result<(), TraceError> {
        let place = Place::Record(self.number);
        let mut left = length;
        while left > 0 {
            let taken = match self.bytes.chunk() {
                Ok([]) => return Err(TraceError::Truncated { place, found: length - left, expected: length }),
                Ok(chunk) => chunk.len().min(left),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(TraceError::Read { place, source }),
            };
            self.bytes.consume(taken);
            left -= taken;
        }
        Ok(())
    }
}

/// Reads up to `length` bytes: fewer only at the end of the source, or in front of an error.
fn fill(source: &mut impl Read, length: usize) -> (Vec<u8>, Option<io::Error>) {
    let mut bytes = Vec::new();
    let failed = source.by_ref().take(length as u64).read_to_end(&mut bytes).err();
    (bytes, failed)
}

/// Decompressor of zstd frames, one behind the other.
struct Zstd<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl<R: Read> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Zstd { source: BufReader::new(source), decoder, is_inside: false }
    }

    /// Reads the header of the next frame. Returns false at the end of the source.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            if !self.is_inside {
                if !self.begin()? {
                    return Ok(0);
                }
                self.is_inside = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(invalid)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let (expected, found) = (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
            if expected.is_some() && expected != found {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of the zstd frame is wrong"));
            }
            self.is_inside = false;
        }
    }
}
