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

/// Checks by scenario and name, and whether they are good. What a check is told several times for counts once, and
/// fails when any of them does.
type Checks = BTreeMap<String, bool>;

#[test]
fn the_fixture_passes_the_suite() {
    let server = Server::fixture();
    let (checks, total) = suite(&server.url);
    assert!(checks.values().all(|good| *good), "{}", failed(&checks));
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
            // What is only told is no check.
            if status == "INFO" {
                continue;
            }
            passed += usize::from(status == "SUCCESS");
            let key = format!("{} {}", scenario(&name), check["id"].as_str().unwrap());
            let good = checks.entry(key).or_insert(true);
            *good &= status == "SUCCESS";
        }
    }
    assert!(!checks.is_empty(), "the suite told nothing: {said}{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{url}: {passed} passed, {} failed", checks.values().filter(|good| !**good).count());
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
    let worse = direct.iter().filter(|(name, good)| **good && through.get(*name) != Some(&true));
    let worse: Vec<&String> = worse.map(|(name, _)| name).collect();
    assert!(worse.is_empty(), "worse through the gateway: {worse:#?}");
}

fn failed(checks: &Checks) -> String {
    let failed: Vec<&str> =
        checks.iter().filter(|(_, good)| !**good).map(|(name, _)| name.as_str()).collect();
    failed.join("\n")
}
