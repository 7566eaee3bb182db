//! The server's side of an NBD connection, driven by a client that is written down byte by byte.

mod negotiation;
mod transmission;
mod util;
