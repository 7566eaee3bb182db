//! Tests of the server and of the page.

mod api;
mod client;
<<<<<<< HEAD
mod page;
=======
mod fos;
>>>>>>> fos
mod server;
