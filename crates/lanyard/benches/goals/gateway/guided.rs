//! Ten thousand sessions with a piece of guidance waiting in each: the calls of other sessions must not notice.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::ground::{self, Lanyard, Record};
use crate::http::{Caller, closed_loop};
use crate::process::Reference;
use crate::report::{Better, Judge, Row};
use crate::{Plan, progress};

const GUIDED: usize = 10_000;
const CALLERS: usize = 16;
/// Requests in flight while the sessions are made.
const MAKERS: usize = 64;
/// Five percent is less than what one repetition is off by, so there are this many times as many of them.
const REPEATED: usize = 3;

pub(super) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let backend = Reference::start("mcp-http", &[])?;
    let [port] = backend.numbers()?;
    let config = ground::http_server(port);
    let alone = Lanyard::start(&dir.join("alone"), Record::After, &config)?;
    let crowded = Lanyard::start(&dir.join("crowded"), Record::After, &config)?;
    let guided = if plan.repetitions > 3 { GUIDED } else { GUIDED / 10 };
    progress(&format!("making {guided} sessions with guidance waiting"));
    make(&crowded, guided)?;
    let mut without = alone.target("Lanyard alone", CALLERS)?;
    let mut beside = crowded.target("Lanyard beside them", CALLERS)?;
    let what = format!("MCP calls, {CALLERS} callers, beside {guided} sessions with guidance");
    let judge = Judge::Ratio(Better::AtLeast, 0.95, 1.0);
    let mut rate = Row::new("guided", what, "/s", judge).beside("without them");
    let mut p50 = Row::new("guided", "the same, p50", "µs", Judge::Shown).beside("without them");
    let rounds = plan.repetitions * REPEATED;
    for round in 0..rounds {
        let (ours, theirs) = if round % 2 == 0 {
            let ours = beside.call(CALLERS, plan.span)?;
            (ours, without.call(CALLERS, plan.span)?)
        } else {
            let theirs = without.call(CALLERS, plan.span)?;
            (beside.call(CALLERS, plan.span)?, theirs)
        };
        rate.add(ours.per_second, theirs.per_second);
        p50.add(ours.p50_us, theirs.p50_us);
        progress(&format!(
            "guided {}/{rounds}: {:.0}/s, without {:.0}/s",
            round + 1,
            ours.per_second,
            theirs.per_second
        ));
    }
    drop((without, beside));
    alone.stop()?;
    crowded.stop()?;
    Ok(vec![rate.note(format!("median of {rounds} pairs")), p50])
}

/// Sessions by a name of their own, and then a word for each.
fn make(lanyard: &Lanyard, count: usize) -> Result<()> {
    let daemon = &lanyard.daemon;
    let caller = Caller::of(daemon);
    let post = |path: &str, body: serde_json::Value| caller.post(path, None, &body.to_string());
    let new = |number| {
        let new = json!({ "agent": "bench", "source": "external", "aliases": [format!("guided-{number}")] });
        post("/sessions", new)
    };
    closed_loop(daemon, MAKERS, (0..count).map(new))?;
    let word = |number| {
        post(&format!("/sessions/guided-{number}/guidance"), json!({ "text": "Mind the gap, please." }))
    };
    closed_loop(daemon, MAKERS, (0..count).map(word))?;
    Ok(())
}
