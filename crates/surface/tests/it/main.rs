//! Tests of the server and of the page.

mod client;
mod fos;
mod server;
