//! Forwarding path of the iSCSI virtualization switch (the iSCSI switch paper). READ and WRITE pass
//! between the connection of a host and connections to back ends; only their headers are processed.
//! `live::iscsi` drives it.
//!
//! ```text
//!                                 descriptor queue = the driver's order of headers
//!   host  -> Header Extractor --> Dispatcher ------------> conventional path:
//!            (mover.rs)           rule.rs | READ, WRITE    target::Session, scsi::Device
//!                                         v
//!            Address Translator (map) -> PDU Duplicating Handler (host.rs, back.rs)
//!                                                  |  Dynamic Session Mapping Table (table.rs)
//!                                                  v
//!   back ends <- Data Mover (mover.rs) <- Action <- Header Adaptor (adaptor.rs)
//! ```
//!
//! [`Mover`] finds the headers in the bytes of a connection and routes the bytes. [`Forward`]
//! contains everything else. Each host session has its own, with its own session at each back end.
//! So a connection that breaks in the middle of a PDU affects only this host's tasks.
//! [`Forward::on_header`] receives every header of these connections and returns an [`Action`] list
//! for the PDU.
//!
//! # Which path
//!
//! A task belongs to one path from command to response. A PDU takes the conventional path in any of
//! the following cases. The first one that matches is counted ([`Kept`]).
//!
//! 1. Any PDU except SCSI Command and the Data-Out of forwarded tasks: it concerns one side only,
//!    or many tasks.
//! 2. Commands other than READ and WRITE (6, 10, 12, 16) without protection: the switch emulates
//!    them.
//! 3. Additional headers, immediate delivery, ORDERED, HEAD OF QUEUE, ACA, or a number out of
//!    order: order among several targets would be lost.
//! 4. A length that differs from the CDB, or a range beyond the volume: the device handles
//!    residuals and errors before any translation.
//! 5. A reservation, unit attention, stopped or protected unit, or ordered tasks: the device keeps
//!    these per host.
//! 6. Blocks with an exclusive conventional command or a lost write: the two would overtake each
//!    other.
//! 7. A back end that is not an iSCSI target (a LUN in a Fibre Channel fabric), even for one piece
//!    only: it has no iSCSI PDUs.
//! 8. A back end that is not connected, or whose parameters do not fit: there is no session to
//!    forward to.
//! 9. A durable write to a back end with a volatile cache that ignores FUA: a SYNCHRONIZE CACHE has
//!    to follow the write.
//! 10. More than [`MAX_PARTS`] pieces; two or more with data digests: a digest covers a whole
//!     segment.
//! 11. Unsolicited data that a back end does not accept or has no window for; a back end that
//!     accepts nothing: they would block the connection.
//!
//! # Order of the two paths
//!
//! [`Volumes`](crate::volume::Volumes) defines one order for all hosts of a volume on either path.
//! Simple tasks are unordered, as on any disk. A command that must be exclusive in its blocks
//! (COMPARE AND WRITE, WRITE AND VERIFY) also waits for forwarded tasks there. Reads and writes
//! that arrive meanwhile take the conventional path and wait for it. ORDERED tasks and the like
//! wait in the device, which counts forwarded tasks as its own.
//!
//! # Lost back ends
//!
//! Forwarded data exist only on the wire. So a task of a lost connection is answered with BUSY, and
//! the host repeats it. Its target may still be writing, and that write must not overwrite later
//! data. Therefore a lost write keeps its blocks locked until a login with the same initiator
//! session identifier has ended the old session (RFC 7143, session reinstatement).
//!
//! # Ports of back ends
//!
//! Ports of a target may differ in their access state (asymmetric access). A command that a port
//! refuses because of its state is answered with BUSY, and nothing more is forwarded to that port.
//! [`Forward::retire`] and [`Forward::close_retired`] end the connection once no command is in
//! flight on it. The next login uses the port of the switch's own session. A login at a port of
//! another portal group does not end the previous session. In that case [`Forward::connect`] may
//! only be called after the units were reset.
//!
//! # Resets of back ends
//!
//! Another initiator may reset a unit of a back end. The target then reports the loss of this
//! switch's commands only by a unit attention for the next command. The earlier commands are then
//! aborted, to be certain, and answered with BUSY. Hosts receive no reset indication because the
//! virtual disk was not reset. If no command follows, the stall check sends TEST UNIT READY
//! ([`Settings::stall`]).
//!
//! # Split commands
//!
//! A command over several pieces becomes one command per piece. Reads request a piece when the
//! header with the last data of the previous piece has passed. Data have to reach the host in
//! order, so an early piece would block its back end's connection. Writes request all pieces at
//! once; R2Ts are passed on in order of their offsets. The failure at the lowest address determines
//! the response.
//!
//! # Duties of the driver
//!
//! 1. When bytes have arrived, call [`Mover::run`]. Write the pieces in their order and handle the
//!    [`Stop`](mover::Stop). Send outputs of the host's session while no PDU is half sent to the
//!    host, with numbers from the `Statuses` of its connection.
//! 2. When a connection to a back end is lost, call [`Mover::disconnect`], then
//!    [`Forward::disconnect`]. If a PDU from there was half sent, close the host's connection,
//!    because sent bytes cannot be withdrawn. If the host is lost, close its connections to back
//!    ends too: [`Forward::close`]. Then log in with the same identifier and call
//!    [`Forward::connect`], or [`Forward::end_lost_writes`] if the session is no longer needed. If
//!    no lost write is pending, end a session by [`Forward::log_out`].
//! 3. For [`Output::Recall`](super::target::Output::Recall) of the session, call
//!    [`Forward::recall`].
//! 4. Run block I/O of the conventional path as jobs of the same
//!    [`Volumes`](crate::volume::Volumes).

mod action;
mod adaptor;
mod back;
mod backends;
mod fit;
mod host;
mod lost;
mod machine;
mod merge;
pub mod mover;
mod output;
mod rule;
mod table;

pub use action::{Action, CloseReason, Conn};
pub use adaptor::logout;
pub use backends::BackUnit;
pub use fit::{Unfit, back_offers, fits, front_offers};
pub use machine::{Counters, Forward, Settings, Switch};
pub use mover::Mover;
pub use rule::Kept;
pub use table::MAX_PARTS;
