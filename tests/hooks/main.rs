//! What the door does at each driver call, seen by a program that knows nothing of us.

#![allow(unsafe_code)] // calls the driver as C does

mod devices;
mod driver;
mod memory;
mod passed;
mod threads;

gpumem_test::main!();
