//! What Linux offers and no safe crate does: batches of datagrams with auxiliary data, tap interfaces, packet sockets,
//! streams as slow as a link, rings of requests that own their buffers, processor time of other processes. All unsafe code of sanloom is here.

pub mod batch;
pub mod interface;
pub mod processor;
pub mod ring;
pub mod stream;
