//! The driver's functions, called as programs call them.

mod arrays;
mod codes;
mod contexts;
mod copies;
mod devices;
mod host_memory;
mod managed;
mod measured;
mod outside;
mod pages;
mod planes;
mod pointers;
mod pools;
mod sets;
mod streams;
mod threads;
