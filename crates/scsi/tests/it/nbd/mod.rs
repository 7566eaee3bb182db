//! Server side of an NBD connection, driven by a scripted client.

mod negotiation;
mod transmission;
mod util;
