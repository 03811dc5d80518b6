//! Each agent alone, without Lanyard: it starts, talks to the scripted model, runs a tool, asks before it
//! does, and takes string ids. When a driver's test fails, this says whether the agent is to blame.

mod acp;
mod codex;
mod once;
mod opencode;

use std::path::PathBuf;

use crate::agents;
use crate::model::Model;

/// A command that every agent asks about first, and whose output is not in its own text.
const COMMAND: &str = "touch smoke && printf SMOKE-%s 42";
const OUTPUT: &str = "SMOKE-42";

/// A home and a workspace that end with the test, and a model of its own.
struct Ground {
    model: Model,
    /// Held for their drop.
    _dirs: [tempfile::TempDir; 2],
    home: PathBuf,
    work: PathBuf,
}

impl Ground {
    fn new() -> Ground {
        let dirs = [agents::home(), tempfile::tempdir().unwrap()];
        let [home, work] = [dirs[0].path().to_owned(), dirs[1].path().join("work")];
        std::fs::create_dir(&work).unwrap();
        Ground { model: Model::start(), _dirs: dirs, home, work }
    }
}
