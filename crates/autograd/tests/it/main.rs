//! Integration tests, on a handful of operators defined here.

#[allow(clippy::type_complexity)] // Signatures are tuples.
mod backend;
mod custom;
mod engine;
mod graph;
mod hooks;
mod inplace;
mod lists;
mod saved;
mod table;
mod threads;
