//! Node ports, FCP initiators and FCP targets against each other and a real switch.

mod harness;
mod login;
mod loss;
mod management;
mod recovery;
