//! The forwarding path of the iSCSI virtualization switch (document 003): READ and WRITE pass between the connection of a host
//! and connections to back ends, and only their headers are looked at. `live::iscsi` drives it.
//!
//! ```text
//!                                 descriptor queue = the driver's order of headers
//!   host  -> Header Extractor --> Dispatcher --------------------------------> conventional path: target::Session, scsi::Device
//!            (mover.rs)           rule.rs | READ, WRITE
//!                                         v
//!                                 Address Translator (core::map) -> PDU Duplicating Handler (host.rs, back.rs)
//!                                                                       |  Dynamic Session Mapping Table (table.rs)
//!                                                                       v
//!   back ends <- Data Mover (mover.rs) <---- Action <----------- Header Adaptor (adaptor.rs)
//! ```
//!
//! [`Mover`] finds the headers in the bytes of a connection and says which bytes go where. [`Forward`] is all of the rest: one for each host session, with one back-end session for each back end, so that
//! what is cut through can break nothing but this host's own tasks. It is told of every header of these connections
//! ([`Forward::on_header`]) and says what becomes of the PDU ([`Action`]).
//!
//! # Which path
//!
//! A task belongs to one path from command to response. The rule, in this order ([`Kept`] counts each):
//!
//! | goes the conventional way | because |
//! |---|---|
//! | everything but SCSI Command and the Data-Out of forwarded tasks | it concerns one side only, or many tasks |
//! | commands but READ and WRITE (6, 10, 12, 16) without protection | they are emulated in the switch |
//! | with additional headers, immediate delivery, ORDERED, HEAD OF QUEUE or ACA, out of turn | order among several targets would be lost |
//! | whose length is not that of the CDB, or beyond the volume | residuals and refusals are the device's, before any translation |
//! | that meet a reservation, a unit attention, a stopped or protected unit, ordered tasks | these are per host, in the device |
//! | into blocks in which a conventional command is alone, or a write was lost | they would pass each other |
//! | to a back end that is behind no iSCSI target (a LUN in a Fibre Channel fabric), also if only a piece of them is there | it has no PDUs |
//! | to a back end that is not connected, or whose parameters do not fit | there is nothing to forward to |
//! | that are to be durable, at a back end with a volatile cache that does not obey FUA | there it takes a SYNCHRONIZE CACHE behind the write |
//! | over more than [`MAX_PARTS`] pieces; over two or more with data digests | a digest covers a whole segment |
//! | with unasked data that a back end would not take, or has no room for; to a back end that takes nothing any more | they would stop the connection |
//!
//! # Order of the two paths
//!
//! There is one order, that of [`Volumes`](crate::volume::Volumes), for all hosts of a volume on either path. A disk gives none among
//! simple tasks; what has to be alone in its blocks (COMPARE AND WRITE, WRITE AND VERIFY) waits there for forwarded tasks too, and
//! reads and writes that come meanwhile go the conventional way and wait for it. ORDERED tasks and the like wait in the device, which
//! counts forwarded tasks as its own.
//!
//! # Lost back ends
//!
//! What is cut through is nowhere but on the wire: a task of a lost connection is answered BUSY, and the host sends it again. Its target
//! may still be writing, though, and what comes later must not be overwritten by that. So a lost write keeps its blocks, alone,
//! until a login with the same initiator session identifier has ended the old session (RFC 7143, session reinstatement).
//!
//! # Ports of back ends
//!
//! A target may have ports that serve better than others (asymmetric access). What a port refuses for that reason is answered BUSY, and
//! nothing more is forwarded there; [`Forward::leave`] and [`Forward::close_left`] let a connection end when nothing is under way on it, and the next login goes where
//! the switch's own session is. A login at a port of another portal group ends nothing of the session before: [`Forward::back_up`] may then come
//! only when the units were reset.
//!
//! # Resets of back ends
//!
//! Another initiator of a back end may reset a unit there, and its target then says nothing more of our commands but by a unit attention of the
//! next one. Then those before it are aborted, to be certain, and answered BUSY: the virtual disk was not reset, so hosts hear of no
//! reset. Where no command follows, the unit of one that does not go on is asked ([`Settings::stall`]).
//!
//! # Split commands
//!
//! A command over several pieces becomes one command for each. Reads ask for a piece when the header of the last data of the piece
//! before has passed: data have to reach the host in order, and a piece that came early would stop its back end's connection. Writes
//! ask for all pieces at once; R2Ts are told in order of their offsets. The first failure in order of addresses is the answer.
//!
//! # What the driver does
//!
//! 1. Bytes have come: [`Mover::run`]. It writes the pieces, in their order, and does what the [`Stop`](mover::Stop) says; outputs of the host's
//!    session are carried while no PDU is half sent to the host, with numbers of [`Mover::statuses`].
//! 2. A connection to a back end is lost: [`Mover::lost`], then [`Forward::lost`]. If a PDU from there was half sent, the host's connection is
//!    closed: what has left cannot be taken back. If the host is lost, so are its connections to back ends: [`Forward::close`]. Then a
//!    login with the same identifier: [`Forward::back_up`], or [`Forward::ended_at`] where nobody wants to go on. Where nothing is left
//!    behind, a session is ended by [`Forward::log_out`].
//! 3. [`Output::Recall`](super::target::Output::Recall) of the session: [`Forward::recall`].
//! 4. Block I/O of the conventional path are jobs of the same [`Volumes`](crate::volume::Volumes).

mod action;
mod adaptor;
mod back;
mod fit;
mod host;
mod machine;
mod merge;
pub mod mover;
mod rule;
mod table;

pub use action::{Action, CloseReason, Conn};
pub use adaptor::logout;
pub use fit::{Unfit, back_wishes, fits, front_wishes};
pub use machine::{BackUnit, Counters, Forward, Settings, Switch};
pub use mover::Mover;
pub use rule::Kept;
pub use table::MAX_PARTS;
