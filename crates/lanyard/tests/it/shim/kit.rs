//! A folder for runs, agents that are small scripts, and looking at processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lanyard_agents::runs::{Adopted, Identity, Link, Output, Runs, Spec, SpoolLimits};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{PATIENCE, binary};

/// Everything it started is ended with it.
pub(super) struct Stage {
    folder: tempfile::TempDir,
    deep: PathBuf,
    /// An id for a run that no other test has: everything that bears it is one run.
    pub(super) run: String,
    pub(super) runs: Runs,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::under("")
    }

    pub(super) fn under(deep: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let deep = folder.path().join(deep).join("runs");
        let run = format!("run_{}", folder.path().file_name().unwrap().to_str().unwrap());
        Self { runs: Runs::new(deep.clone(), binary().into()), folder, deep, run }
    }

    /// With a shim that runs under limits of the shell.
    pub(super) fn limited(limits: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let mut stage = Self::new();
        let wrapper = stage.folder.path().join("wrapper");
        let script = format!("#!/bin/sh\n{limits}\nexec '{}' \"$@\"\n", binary().display());
        std::fs::write(&wrapper, script).unwrap();
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o700)).unwrap();
        stage.runs = Runs::new(stage.deep.clone(), wrapper);
        stage
    }

    pub(super) fn root(&self) -> PathBuf {
        self.deep.clone()
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    /// Makes an empty file the agent can wait for.
    pub(super) fn write(&self, name: &str) {
        std::fs::write(self.work().join(name), "").unwrap();
    }

    pub(super) fn spec(&self, script: &str) -> Spec {
        Spec {
            argv: vec!["sh".into(), "-c".into(), script.into()],
            env: BTreeMap::new(),
            clear_env: false,
            cwd: self.work(),
            grace_ms: 500,
            limits: SpoolLimits::default(),
            sandbox: None,
            bounds: None,
            terminal: None,
        }
    }

    pub(super) async fn start(&self, run: &str, script: &str) -> Link {
        self.start_spec(run, &self.spec(script)).await
    }

    pub(super) async fn start_spec(&self, run: &str, spec: &Spec) -> Link {
        self.runs.start(run, &serde_json::json!({"session": run}), spec).await.unwrap()
    }

    pub(super) async fn adopt_live(&self, run: &str) -> Link {
        match self.runs.adopt(run).await.unwrap() {
            Adopted::Live(link) => link,
            other @ (Adopted::Ended(_) | Adopted::Gone { .. }) => panic!("{other:?}"),
        }
    }

    pub(super) fn spooled(&self, run: &str) -> Vec<u8> {
        std::fs::read(self.file(run, "out")).unwrap()
    }

    pub(super) fn file(&self, run: &str, name: &str) -> PathBuf {
        self.deep.join(run).join(name)
    }

    pub(super) fn shim(&self, run: &str) -> Identity {
        let text = std::fs::read(self.file(run, "shim.json")).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        serde_json::from_value(value["shim"].clone()).unwrap()
    }

    /// The process whose number an agent wrote to a file, once it has.
    pub(super) fn process(&self, name: &str) -> Identity {
        let path = self.work().join(name);
        let read = || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
        wait_for(&format!("a number in {name}"), || read().is_some());
        let pid = read().unwrap().trim().parse().unwrap();
        Identity::of(pid).unwrap().unwrap_or_else(|| panic!("{name} is gone already"))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let runs = self.runs.clone();
        let sweep = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            for known in runs.list().unwrap() {
                let _ = runtime.block_on(runs.sweep(&known.run, Duration::ZERO));
            }
        };
        std::thread::spawn(sweep).join().unwrap();
    }
}

pub(super) fn kill_9(process: &Identity) {
    kill(process, Signal::KILL);
    wait_for("a killed process to be gone", || !process.is_alive());
}

pub(super) fn kill(process: &Identity, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap(), signal).unwrap();
}

pub(super) async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wait).await.expect("it takes too long")
}

pub(super) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "waited in vain for {what}");
        // sleep: between two looks at something another process does.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reads until the output ends with `mark`.
pub(super) async fn read_until(output: &mut Output, mark: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while !all.ends_with(mark) {
        all.extend_from_slice(&within(output.next()).await.unwrap().expect("more output"));
    }
    all
}

/// A line of `/proc/PID/status` in KiB.
pub(super) fn memory_kib(process: &Identity, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    let found = status.lines().find_map(|one| one.strip_prefix(line)).unwrap();
    found.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}
