//! Agents under supervision: what an idle one costs, how fast a chatty one gets through shim, daemon and journal to a
//! reader, and how long it takes from a stop to the end of its last process.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::Plan;
use crate::http::{Caller, Client};
use crate::process::Daemon;
use crate::report::{Better, Judge, Row};

/// How long one turn or stop may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// Resident memory a shim may have.
const SHIM_KB_MAX: f64 = 4_096.0;
/// Grace between TERM and KILL for the agent that ignores TERM.
const GRACE_MS: u64 = 1_000;
/// Bytes of one piece of chatter.
const CHUNK: usize = 200;

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let lanyard = env!("CARGO_BIN_EXE_lanyard");
    let state = dir.join("state");
    let agent = |name: &str, flag: &str| {
        format!(
            "[agents.{name}]\ndriver = \"acp\"\nkill_grace_ms = {GRACE_MS}\n\
             command = [\"{lanyard}\", \"scripted-agent\", \"--state\", \"{}\"{flag}]\n",
            state.display()
        )
    };
    let home = dir.join("home");
    std::fs::create_dir_all(&home)?;
    let config = agent("good", "") + &agent("stubborn", ", \"--ignore-term\"");
    std::fs::write(home.join("config.toml"), config)?;
    let workspace = dir.join("workspace");
    std::fs::create_dir_all(&workspace)?;
    let daemon = Daemon::start(&home)?;
    let bench = Bench { daemon: &daemon, home: &home, workspace, state, made: RefCell::default() };
    let rows = bench.rows(plan);
    // Agents outlive their daemon, so they are ended first, whatever became of the measurements.
    bench.end_all()?;
    daemon.stop()?;
    rows
}

struct Bench<'a> {
    daemon: &'a Daemon,
    home: &'a Path,
    workspace: PathBuf,
    state: PathBuf,
    /// Sessions that may still have an agent.
    made: RefCell<Vec<String>>,
}

impl Bench<'_> {
    fn rows(&self, plan: &Plan) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        if plan.wants("A1") {
            rows.extend(self.memory(plan)?);
        }
        if plan.wants("A2") {
            rows.push(self.throughput(plan)?);
        }
        if plan.wants("A3") {
            let (good, stubborn) =
                ("stop of an obedient agent in mid-turn: slowest", "the same, ignoring TERM: slowest");
            rows.push(self.stops(plan, "good", good, 1_000.0)?);
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let bar = (GRACE_MS + 1_000) as f64;
            rows.push(self.stops(plan, "stubborn", stubborn, bar)?);
        }
        Ok(rows)
    }

    fn end_all(&self) -> Result<()> {
        for session in self.made.take() {
            self.post(&format!("/sessions/{session}/stop"), &json!({}))?;
            self.read_until(&session, "session.ended")?;
        }
        Ok(())
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let mut client = Client::connect(self.daemon)?;
        let answer = client.ask(&Caller::of(self.daemon).post(path, None, &body.to_string()))?;
        serde_json::from_slice(&answer).context("an answer that is no JSON")
    }

    fn session(&self, agent: &str) -> Result<String> {
        let made = self.post("/sessions", &json!({ "agent": agent, "workspace": self.workspace }))?;
        let session = made["session"].as_str().with_context(|| format!("no session: {made}"))?;
        self.made.borrow_mut().push(session.to_owned());
        Ok(session.to_owned())
    }

    fn prompt(&self, session: &str, words: &str) -> Result<()> {
        let begun = self.post(&format!("/sessions/{session}/turns"), &json!({ "prompt": words }))?;
        ensure!(begun["turn"].is_string(), "no turn: {begun}");
        Ok(())
    }

    fn read_until(&self, session: &str, kind: &str) -> Result<usize> {
        self.read(session, |event, _| event["type"] == kind)
    }

    /// Reads the session's stream from the beginning until `done`, which is shown each event and how much text there was
    /// so far; answers how much that is.
    fn read(&self, session: &str, done: impl Fn(&Value, usize) -> bool) -> Result<usize> {
        let mut stream = TcpStream::connect(self.daemon.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&Caller::of(self.daemon).stream(&format!("/sessions/{session}/events?after=0")))?;
        let mut text = 0;
        for line in BufReader::with_capacity(256 * 1024, stream).lines() {
            let line = line?;
            let Some(body) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(body)?;
            text += event["data"]["text"].as_str().map_or(0, str::len);
            if done(&event, text) {
                return Ok(text);
            }
        }
        bail!("the stream ended after {text} bytes of text")
    }

    fn memory(&self, plan: &Plan) -> Result<Vec<Row>> {
        let agents = if plan.repetitions > 3 { 32 } else { 8 };
        let warm = self.session("good")?;
        self.prompt(&warm, "/say ready")?;
        self.read_until(&warm, "turn.finished")?;
        let before = resident_kb(self.daemon.pid())?;
        for _ in 0..agents {
            let session = self.session("good")?;
            self.prompt(&session, "/say ready")?;
            self.read_until(&session, "turn.finished")?;
        }
        let after = resident_kb(self.daemon.pid())?;
        let mut shims = Row::new("A1", "shim of an idle agent, resident", "kB", Judge::Below(SHIM_KB_MAX));
        for run in std::fs::read_dir(self.home.join("runs"))? {
            let file: Value = serde_json::from_slice(&std::fs::read(run?.path().join("shim.json"))?)?;
            let pid = file["shim"]["pid"].as_u64().context("no shim")?;
            shims.figures.push(resident_kb(u32::try_from(pid)?)?);
        }
        let mut daemon = Row::new("A1", format!("daemon per idle agent, of {agents}"), "kB", Judge::Shown);
        daemon.figures.push((after - before) / f64::from(agents));
        Ok(vec![shims, daemon])
    }

    fn throughput(&self, plan: &Plan) -> Result<Row> {
        let chunks = if plan.repetitions > 3 { 200_000 } else { 40_000 };
        let judge = Judge::Ratio(Better::AtLeast, 0.3, 0.6);
        let mut row = Row::new("A2", "a chatty agent to a reader, durably", "MB/s of text", judge)
            .beside("bare pipe")
            .note(format!("{chunks} pieces of {CHUNK} bytes"));
        let script = format!("/chatter {chunks} {CHUNK}");
        for _ in 0..plan.repetitions {
            let session = self.session("good")?;
            self.prompt(&session, "/say warm")?;
            self.read_until(&session, "turn.finished")?;
            // The greeting is over; the clock runs from the prompt to the reader's last word.
            let began = Instant::now();
            self.prompt(&session, &script)?;
            let text = self.read(&session, |_, text| text >= chunks * CHUNK)?;
            #[expect(clippy::cast_precision_loss, reason = "figures are rounded anyway")]
            let ours = text as f64 / 1e6 / began.elapsed().as_secs_f64();
            row.add(ours, self.bare_pipe(&script, chunks * CHUNK)?);
        }
        Ok(row)
    }

    /// The same agent, the same script, and nothing between it and a reader of lines that parses each.
    fn bare_pipe(&self, script: &str, wanted: usize) -> Result<f64> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lanyard"))
            .arg("scripted-agent")
            .arg("--state")
            .arg(&self.state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().context("no stdin")?;
        let mut output =
            BufReader::with_capacity(256 * 1024, child.stdout.take().context("no stdout")?).lines();
        let mut ask = |id: &str, method: &str, params: Value| {
            writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
        };
        ask("1", "initialize", json!({ "protocolVersion": 1 }))?;
        output.next().context("no greeting")??;
        ask("2", "session/new", json!({ "cwd": self.workspace, "mcpServers": [] }))?;
        let opened: Value = serde_json::from_str(&output.next().context("no session")??)?;
        let session = opened["result"]["sessionId"].as_str().context("no session")?.to_owned();
        let began = Instant::now();
        let prompt = json!([{ "type": "text", "text": script }]);
        ask("3", "session/prompt", json!({ "sessionId": session, "prompt": prompt }))?;
        let mut text = 0;
        while text < wanted {
            let line: Value = serde_json::from_str(&output.next().context("the agent ended early")??)?;
            text += line["params"]["update"]["content"]["text"].as_str().map_or(0, str::len);
        }
        #[expect(clippy::cast_precision_loss, reason = "figures are rounded anyway")]
        let speed = text as f64 / 1e6 / began.elapsed().as_secs_f64();
        drop(output);
        let _ = child.kill();
        child.wait()?;
        Ok(speed)
    }

    /// From the stop to the end that is confirmed: nothing of the process tree lives then.
    fn stops(&self, plan: &Plan, agent: &str, what: &str, bar: f64) -> Result<Row> {
        let mut row = Row::new("A3", what, "ms", Judge::Below(bar));
        let rounds = if plan.repetitions > 3 { 40 } else { 5 };
        let mut slowest: f64 = 0.0;
        for _ in 0..rounds {
            let session = self.session(agent)?;
            self.prompt(&session, "/say at work\n/wait-file /nowhere/at/all")?;
            self.read_until(&session, "message")?;
            let began = Instant::now();
            self.post(&format!("/sessions/{session}/stop"), &json!({}))?;
            self.read_until(&session, "session.ended")?;
            slowest = slowest.max(began.elapsed().as_secs_f64() * 1e3);
            self.made.borrow_mut().retain(|made| *made != session);
        }
        row.figures.push(slowest);
        Ok(row.note(format!("{rounds} stops")))
    }
}

fn resident_kb(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
