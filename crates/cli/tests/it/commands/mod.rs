//! The command as its users meet it: exit code, standard output and standard error together.

mod bench;
mod check;
mod documents;
mod files;
mod grammar;
mod imports;
mod interrupts;
mod joins;
mod long_trace;
mod outputs;
mod reproduce;
mod show;
mod sim;
mod sweep;
mod tool;
mod traces;
mod usage;
mod whatif;
mod zones;
