//! Tests of the schema language, one file per question.

mod compatibility;
mod malformed;
mod properties;
mod queries;
mod round_trip;

use super::FunctionSchema;

/// `registered.txt` without its comments.
fn registered() -> impl Iterator<Item = &'static str> {
    include_str!("registered.txt").lines().filter(|line| !line.starts_with('#'))
}

/// The schema of a text that is known to be one.
fn schema(text: &str) -> FunctionSchema {
    FunctionSchema::parse(text).unwrap_or_else(|error| panic!("{error}"))
}
