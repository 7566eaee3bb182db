//! Tests of the server and of the page.

mod api;
mod client;
mod page;
mod server;
