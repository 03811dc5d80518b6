//! The public conformance suite against servers alone and behind the gateway: not one check may be worse.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::forward::Forward;
use super::kit::{Gateway, everything_command, run};
use super::servers::{self, Server};
use crate::agents;

/// What the suite checks in our fixture, all of it good.
const FIXTURE_CHECKS: usize = 47;

/// What became of a check. One that is told several times counts once, and as the worst of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    /// The suite only remarks on it: a server may answer with JSON where another streams.
    Remark,
    Passed,
    Failed,
}

/// Checks by scenario and name.
type Checks = BTreeMap<String, Check>;

#[test]
fn the_fixture_passes_the_suite() {
    let server = Server::fixture();
    let (checks, total) = suite(&server.url);
    assert!(checks.values().all(|check| *check != Check::Failed), "{}", failed(&checks));
    assert_eq!(total, FIXTURE_CHECKS);
}

/// A control: whatever is worse behind the gateway is not the fault of how this suite gets there.
#[test]
fn the_suites_own_way_changes_nothing() {
    let server = Server::fixture();
    assert_eq!(through(&server.target()), suite(&server.url).0);
}

#[test]
fn the_fixture_is_not_worse_behind_the_gateway() {
    let server = Server::fixture();
    let gateway = Gateway::before(&server);
    not_worse(&suite(&server.url).0, &through(&gateway.way().target));
}

#[test]
fn the_fixture_is_not_worse_without_a_session() {
    let server = Server::fixture();
    let gateway = Gateway::before(&server);
    not_worse(&suite(&server.url).0, &through(&gateway.plain_target()));
}

#[test]
fn the_reference_server_is_not_worse_behind_the_gateway() {
    let server = Server::everything();
    let gateway = Gateway::before(&server);
    not_worse(&suite(&server.url).0, &through(&gateway.way().target));
}

#[test]
fn the_reference_server_on_stdio_is_not_worse_than_on_http() {
    let server = Server::everything();
    let gateway = Gateway::before_stdio(&everything_command());
    not_worse(&suite(&server.url).0, &through(&gateway.way().target));
}

fn through(target: &Value) -> Checks {
    let forward = Forward::to(target);
    suite(&forward.url).0
}

/// Runs the whole suite against an address. Answers its checks, and how many passed.
fn suite(url: &str) -> (Checks, usize) {
    let results = tempfile::tempdir().unwrap();
    let mut command = servers::node();
    command.arg(agents::binary("mcp_conformance", "conformance"));
    command.args(["server", "--url", url, "--suite", "all", "--output-dir"]).arg(results.path());
    let output = run(&mut command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut checks = Checks::new();
    let mut passed = 0;
    for folder in std::fs::read_dir(results.path()).unwrap().flatten() {
        let name = folder.file_name().into_string().unwrap();
        for check in read(&folder.path().join("checks.json")) {
            let status = check["status"].as_str().unwrap().to_owned();
            passed += usize::from(status == "SUCCESS");
            let key = format!("{} {}", scenario(&name), check["id"].as_str().unwrap());
            let held = checks.entry(key).or_insert(Check::Remark);
            *held = (*held).max(match status.as_str() {
                "SUCCESS" => Check::Passed,
                "INFO" => Check::Remark,
                _ => Check::Failed,
            });
        }
    }
    assert!(!checks.is_empty(), "the suite told nothing: {said}{}", String::from_utf8_lossy(&output.stderr));
    eprintln!(
        "{url}: {passed} passed, {} failed",
        checks.values().filter(|check| **check == Check::Failed).count()
    );
    (checks, passed)
}

fn read(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// `server-ping-2026-11-15T15-05-27-170Z` is of the scenario `ping`.
fn scenario(folder: &str) -> &str {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    &name[..name.len().saturating_sub("-2026-11-15T15-05-27-170Z".len())]
}

fn not_worse(direct: &Checks, through: &Checks) {
    let fine = |check: Option<&Check>| check.is_some_and(|check| *check != Check::Failed);
    let worse = direct.iter().filter(|(name, check)| **check == Check::Passed && !fine(through.get(*name)));
    let worse: Vec<&String> = worse.map(|(name, _)| name).collect();
    assert!(worse.is_empty(), "worse through the gateway: {worse:#?}");
}

fn failed(checks: &Checks) -> String {
    let failed: Vec<&str> =
        checks.iter().filter(|(_, check)| **check == Check::Failed).map(|(name, _)| name.as_str()).collect();
    failed.join("\n")
}
