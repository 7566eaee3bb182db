//! Tests of the server and of the page.

mod api;
mod client;
mod fos;
mod page;
mod server;
