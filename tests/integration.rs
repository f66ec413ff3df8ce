//! Integration tests.
fn main() {}
