//! `/metrics` as Prometheus reads it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::kit::{Stage, attach};

/// One line of the page by its name and labels.
fn value(page: &str, series: &str) -> Option<f64> {
    let line =
        page.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn the_page_has_the_documented_names_and_needs_a_token() {
    let stage = Stage::new("");
    let session = stage.new_session();
    attach(&stage.daemon, &session, "");
    stage.fail_to_attach(&session, 2);
    let answer = stage.daemon.request("GET", "/metrics", &[], None);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let page = answer.text();
    for (series, expected) in [
        ("lanyard_sessions{state=\"beginning\"}", 1.0),
        ("lanyard_sessions{state=\"executing\"}", 0.0),
        ("lanyard_sessions_created_total", 1.0),
        ("lanyard_attach_total{result=\"succeeded\"}", 1.0),
        ("lanyard_attach_total{result=\"failed\"}", 2.0),
        ("lanyard_resumed_total{continuity=\"lost\"}", 0.0),
        ("lanyard_duplicates_suppressed_total{of=\"turn\"}", 0.0),
        ("lanyard_continuity_degraded", 0.0),
        ("lanyard_storage_up", 1.0),
        ("lanyard_notifications{status=\"new\"}", 0.0),
        ("lanyard_notification_deliveries{state=\"dead\"}", 0.0),
    ] {
        assert_eq!(value(&page, series), Some(expected), "{series}\n{page}");
    }
    let rate = value(&page, "lanyard_continuity_rate{rate=\"attach_success\"}").unwrap();
    assert!((rate - 1.0 / 3.0).abs() < 1e-9);
    assert!(!page.contains("rate=\"resume_success\""), "no attempts, no number");
    let mut nobody = stage.daemon.caller();
    nobody.token = "lyd_wrong".to_owned();
    assert_eq!(nobody.try_request("GET", "/metrics", &[], None).unwrap().status, 401);
    // Every name is in the documentation.
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for name in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = name.split(' ').next().unwrap();
        assert!(docs.contains(&format!("`{name}`")), "{name} is not in docs/metrics.md");
    }
    accepted_by_prometheus(&page);
}

/// Held against Prometheus' own parser and linter, where it is installed.
fn accepted_by_prometheus(page: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else {
        eprintln!(
            "promtool is not on PATH: `apt-get install prometheus` to hold the page against the real parser"
        );
        return;
    };
    tool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool: {}\n{page}", String::from_utf8_lossy(&said));
}
