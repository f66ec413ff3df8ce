//! The `quarry` program.
fn main() {}
