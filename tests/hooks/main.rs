//! What the door does at each driver call, seen by a program that knows nothing of us.

#![allow(unsafe_code)] // calls the driver as C does
#![allow(clippy::macro_metavars_in_unsafe)] // arguments are plain values of the tests

mod captures;
mod contexts;
mod devices;
mod driver;
mod family;
mod faults;
mod first_writes;
mod frees;
mod lazy;
mod memory;
mod passed;
mod physical;
mod pools;
mod threads;
mod waits;

gpumem_test::main!();
