//! The dispatcher from outside: registration, both calling conventions, keys, observers, concurrency.

mod calling;
mod concurrency;
mod keys;
mod observers;
