//! Traces of requests: readers of many formats, one request at a time, and what follows from them.
//!
//! [`TraceReader`] is an iterator of [`TraceRequest`]s in the order of their arrival. Files may be
//! compressed by gzip or zstd. Memory is bounded whatever the length of the trace: 16 MiB for the
//! window of a compressed file, and a few MiB for the names of devices and the reorder window.
//!
//! - [`TraceWriter`] writes some of the formats.
//! - [`inspect`] computes statistics, and a synthetic workload with the same numbers.
//! - [`replay`] prepares a trace for a simulated or live host.
//!
//! ```
//! use sanloom_storage::trace::{Settings, TraceOp, TraceReader};
//!
//! let text = "0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214\n";
//! let reader = TraceReader::new(text.as_bytes(), &Settings::default())?;
//! let requests: Vec<_> = reader.collect::<Result<_, _>>()?;
//! assert_eq!((requests[1].op, requests[1].offset_bytes), (TraceOp::Read, 55_590 * 512));
//! assert_eq!(requests[1].arrival_ps, 26_214_000_000);
//! # Ok::<(), sanloom_storage::trace::TraceError>(())
//! ```

mod block;
mod columns;
mod detect;
mod error;
mod fio;
mod format;
mod input;
pub mod inspect;
mod order;
mod parse;
mod pattern;
mod reader;
pub mod replay;
mod request;
pub mod validate;
mod vscsi;
mod write;

pub use error::{MAX_SHOWN, Place, TraceError};
pub use format::{BlockEvent, Format, Settings};
pub use input::MAX_LINE;
pub use pattern::Pattern;
pub use reader::{MAX_DEVICES, TraceReader};
pub use request::{TraceOp, TraceRequest};
pub use write::{Lost, TraceWriter, WRITABLE};
