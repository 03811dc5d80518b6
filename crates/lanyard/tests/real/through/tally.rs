//! What was shown, one line each, for the table that `cargo xtask test real` prints at the end.

use std::fs::File;
use std::io::Write;

use super::cases::Case;
use crate::agents;

/// Names the file the lines are appended to.
const FILE: &str = "LANYARD_REAL_RESULTS";

pub(super) fn tell(case: &Case, capability: &str, word: &str) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let line = format!("{}\t{}\t{capability}\t{word}\n", case.name, agents::version(case.package));
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}
