//! What becomes of answers, as tables.
use super::*;
#[test]
fn placeholder() {}
