//! Linux features without a safe binding: batched datagrams with auxiliary data, tap interfaces,
//! packet sockets, paced streams, request rings that own their buffers, and processor time of other
//! processes. This module contains all unsafe code of sanloom.

pub mod batch;
pub mod interface;
pub mod processor;
pub mod stream;
