//! P5: a stdio server made reachable over HTTP, by Lanyard and by the public programs that do it, with the same server
//! behind each. `cargo xtask bench gateway` installs them; one that is not there is said so and left out.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::ground::{self, Lanyard, Record};
use super::load::{PATH, Seen, Target};
use super::{CALLERS, CALLERS_MAX, plain_ways};
use crate::process::Foreign;
use crate::report::{Better, Judge, Row};
use crate::{Plan, progress};

/// Names the folder that holds one folder per package and version.
const FOLDER: &str = "LANYARD_REAL_AGENTS";
const PACKAGES: &str = include_str!("../bridges.txt");
/// A Node or Python program's cold start on a busy machine.
const STARTING: Duration = Duration::from_mins(1);

/// A public program, and how it is told to put a command on a port.
struct Bridge {
    package: &'static str,
    /// As the table says it.
    name: &'static str,
    /// The program in its package's folder, and what runs it.
    command: fn(&Path, port: u16, server: &[String]) -> Command,
    /// The goal is set against the best of those in Node.
    node: bool,
}

const BRIDGES: [Bridge; 3] = [
    Bridge { package: "supergateway", name: "supergateway", command: supergateway, node: true },
    Bridge { package: "mcp_proxy_npm", name: "mcp-proxy (npm)", command: mcp_proxy_npm, node: true },
    Bridge { package: "mcp_proxy_pypi", name: "mcp-proxy (PyPI)", command: mcp_proxy_pypi, node: false },
];

fn supergateway(folder: &Path, port: u16, server: &[String]) -> Command {
    let mut command = Command::new("node");
    command.arg(folder.join("node_modules/supergateway/dist/index.js"));
    command.arg("--stdio").arg(server.join(" "));
    command.args(["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none"]);
    command.args(["--streamableHttpPath", PATH, "--port", &port.to_string()]);
    command
}

fn mcp_proxy_npm(folder: &Path, port: u16, server: &[String]) -> Command {
    let mut command = Command::new("node");
    command.arg(folder.join("node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs"));
    command.args(["--server", "stream", "--host", "127.0.0.1", "--port", &port.to_string(), "--"]);
    command.args(server);
    command
}

fn mcp_proxy_pypi(folder: &Path, port: u16, server: &[String]) -> Command {
    let mut command = Command::new(folder.join("bin/python"));
    command.args(["-m", "mcp_proxy", "--stateless", "--log-level", "ERROR"]);
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--"]).args(server);
    command
}

/// One that runs, and what was seen of it.
struct Running {
    bridge: &'static Bridge,
    /// Ends with it.
    _process: Foreign,
    target: Target,
    seen: Vec<[Seen; 3]>,
}

pub(super) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let lanyard = Lanyard::start(&dir.join("bridge"), Record::After, &ground::stdio_server()?)?;
    let mut target = lanyard.target("Lanyard on stdio", CALLERS_MAX)?;
    let mut others = Vec::new();
    for bridge in &BRIDGES {
        match start(bridge) {
            Ok(running) => others.push(running),
            Err(error) => progress(&format!("{} is not measured: {error:#}", bridge.name)),
        }
    }
    let mut ours = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut seen = Vec::new();
        for callers in CALLERS {
            seen.push(target.call(callers, plan.span)?);
        }
        ours.push([seen[0], seen[1], seen[2]]);
        for other in &mut others {
            let mut seen = Vec::new();
            for callers in CALLERS {
                seen.push(other.target.call(callers, plan.span)?);
            }
            other.seen.push([seen[0], seen[1], seen[2]]);
        }
        let theirs = others.iter().filter_map(|other| other.seen.last());
        let theirs: Vec<String> = theirs.map(|seen| format!("{:.0}", seen[1].per_second)).collect();
        progress(&format!(
            "stdio {}/{}, 16 callers: {:.0}/s, others {}/s",
            repetition + 1,
            plan.repetitions,
            seen[1].per_second,
            theirs.join(", ")
        ));
    }
    drop(target);
    lanyard.stop()?;
    let missing =
        BRIDGES.iter().filter(|bridge| !others.iter().any(|other| other.bridge.name == bridge.name));
    let mut rows: Vec<Row> = others.iter().flat_map(|other| rows(&ours, other)).collect();
    rows.extend(missing.map(|bridge| not_here(&ours, bridge)));
    Ok(rows)
}

fn start(bridge: &'static Bridge) -> Result<Running> {
    let folder = folder(bridge.package)?;
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let mut command = (bridge.command)(&folder, port, &ground::stdio_command()?);
    let process = Foreign::start(&mut command).context("it does not start")?;
    let began = Instant::now();
    while !answers(port) {
        ensure!(began.elapsed() < STARTING, "it does not listen");
        std::thread::sleep(Duration::from_millis(100));
    }
    let target = Target::join(bridge.name, ground::local(port), process.pid(), &plain_ways())?;
    Ok(Running { bridge, _process: process, target, seen: Vec::new() })
}

/// Whether there is somebody who takes requests.
fn answers(port: u16) -> bool {
    use std::io::Write;
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let asked = stream.write_all(b"GET /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    asked.is_ok() && stream.read(&mut [0; 64]).is_ok_and(|count| count > 0)
}

/// Where a package was installed. `@scope/name` in version `1.2.3` is in `scope+name@1.2.3`.
fn folder(name: &str) -> Result<PathBuf> {
    let root = std::env::var_os(FOLDER).context("not installed (`cargo xtask bench gateway` does it)")?;
    let mut lines = PACKAGES.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.first() == Some(&name)).context("it is in no list")?;
    let [_, package, version] = fields[..] else { anyhow::bail!("bridges.txt has a broken line") };
    let package = package.trim_start_matches('@').replace(['/', ':'], "+");
    let folder = Path::new(&root).join(format!("{package}@{version}"));
    ensure!(folder.is_dir(), "not installed (`cargo xtask bench gateway` does it)");
    Ok(folder)
}

/// Ahead at every number of callers; and by how much, where the goal says so.
fn rows(ours: &[[Seen; 3]], other: &Running) -> Vec<Row> {
    let Running { bridge, seen: theirs, .. } = other;
    let mut rows = Vec::new();
    for (column, callers) in CALLERS.into_iter().enumerate() {
        let bar = if bridge.node && callers == 16 { (4.0, 6.0) } else { (1.0, 4.0) };
        let judge = Judge::Ratio(Better::AtLeast, bar.0, bar.1);
        let mut row = Row::new("P5", format!("stdio server, {callers} callers"), "/s", judge);
        for (our, their) in ours.iter().zip(theirs) {
            row.add(our[column].per_second, their[column].per_second);
        }
        rows.push(row.beside(bridge.name));
    }
    let judge = Judge::Ratio(Better::AtMost, if bridge.node { 0.35 } else { 1.0 }, 0.25);
    let mut p50 = Row::new("P5", "stdio server, one caller: p50", "µs", judge);
    let mut cpu = Row::new("P5", "stdio server, 16 callers: CPU per call", "µs", Judge::Shown);
    for (our, their) in ours.iter().zip(theirs) {
        p50.add(our[0].p50_us, their[0].p50_us);
        cpu.add(our[1].cpu_us, their[1].cpu_us);
    }
    rows.extend([p50.beside(bridge.name), cpu.beside(bridge.name)]);
    rows
}

fn not_here(ours: &[[Seen; 3]], bridge: &Bridge) -> Row {
    let mut row = Row::new("P5", "stdio server, 16 callers", "/s", Judge::Shown)
        .beside("not measured: not installed here")
        .note(format!("without {}", bridge.name));
    row.figures.extend(ours.iter().map(|seen| seen[1].per_second));
    row
}
