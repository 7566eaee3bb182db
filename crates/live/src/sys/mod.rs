//! Linux features without a safe binding: batched datagrams with auxiliary data, tap interfaces,
//! packet sockets, paced streams, and processor time of other processes. All unsafe code of sanloom
//! is here and in `ring` of `sanloom-bench`.

pub mod batch;
pub mod interface;
pub mod processor;
pub mod stream;
