//! What was shown, one line each, for the table that `cargo xtask test real` prints at the end.

use std::fs::File;
use std::io::Write;

use crate::agents;

/// Names the file the lines are appended to.
const FILE: &str = "LANYARD_REAL_RESULTS";

/// `package` is the agent's in packages.txt.
pub(crate) fn tell(agent: &str, package: &str, capability: &str, word: &str) {
    note(agent, agents::version(package), capability, word);
}

/// A line about something that is no package of the suite's.
pub(crate) fn note(agent: &str, version: &str, capability: &str, word: &str) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let line = format!("{agent}\t{version}\t{capability}\t{word}\n");
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}
