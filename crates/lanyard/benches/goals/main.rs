//! The performance goals, measured.

fn main() {}
