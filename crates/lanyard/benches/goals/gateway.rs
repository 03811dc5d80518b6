//! P1 to P6: what it costs that Lanyard stands between an agent and its MCP servers. Beside it a bare proxy, which only
//! passes on, and public programs that put a stdio server on HTTP; and sessions with words waiting, which must not
//! concern the others.

mod answer;
mod bridges;
mod echo;
mod ground;
mod guided;
mod load;
mod servers;

use std::path::Path;

use anyhow::Result;

pub(crate) use self::servers::play;

use self::ground::{Lanyard, Record};
use self::load::{PATH, Seen, Target, Way};
use crate::process::Reference;
use crate::report::{Better, Judge, Row};
use crate::{Plan, progress};

/// Calls in flight at a time.
const CALLERS: [usize; 3] = [1, 16, 64];
const CALLERS_MAX: usize = 64;
/// How often each of them is looked at in a repetition: those that goals are set for more often than the others.
const TIMES: [usize; 3] = [3, 1, 3];

pub(crate) fn run(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if plan.wants_any(&["P1", "P2", "P3", "P4", "P6"]) {
        rows.extend(proxying(plan, dir)?);
    }
    if plan.wants("P5") {
        rows.extend(bridges::run(plan, dir)?);
    }
    if plan.wants("guided") {
        rows.extend(guided::run(plan, dir)?);
    }
    Ok(rows)
}

/// The same call in all ways, next to each other, at every number of callers.
struct Round {
    direct: [Seen; 3],
    raw: [Seen; 3],
    after: [Seen; 3],
    written: [Seen; 3],
    synced: [Seen; 3],
}

fn proxying(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let backend = Reference::start("mcp-http", &[])?;
    let [port] = backend.numbers()?;
    let raw = Reference::start("mcp-raw", &[port.to_string()])?;
    let [raw_port] = raw.numbers()?;
    let config = ground::http_server(port);
    let after = Lanyard::start(&dir.join("after"), Record::After, &config)?;
    let written = Lanyard::start(&dir.join("written"), Record::Written, &config)?;
    let synced = Lanyard::start(&dir.join("synced"), Record::Synced, &config)?;
    let ways = plain_ways();
    let mut targets = [
        Target::join("direct", ground::local(port), backend.pid(), &ways)?,
        Target::join("bare proxy", ground::local(raw_port), raw.pid(), &ways)?,
        after.target("Lanyard, recorded after", CALLERS_MAX)?,
        written.target("Lanyard, written before", CALLERS_MAX)?,
        synced.target("Lanyard, synced before", CALLERS_MAX)?,
    ];
    let mut rounds = Vec::new();
    for repetition in 0..plan.repetitions {
        let seen = all_of(&mut targets, repetition, plan)?;
        let [direct, raw, after, written, synced] = seen;
        progress(&format!(
            "gateway {}/{}, {CALLERS_MAX} callers: {:.0}/s, written {:.0}/s, synced {:.0}/s, bare proxy {:.0}/s, direct {:.0}/s",
            repetition + 1,
            plan.repetitions,
            after[2].per_second,
            written[2].per_second,
            synced[2].per_second,
            raw[2].per_second,
            direct[2].per_second
        ));
        rounds.push(Round { direct, raw, after, written, synced });
    }
    drop(targets);
    after.stop()?;
    written.stop()?;
    synced.stop()?;
    Ok(rows(&rounds))
}

fn plain_ways() -> Vec<Way> {
    (0..CALLERS_MAX).map(|_| Way { path: PATH.to_owned(), headers: String::new() }).collect()
}

/// One repetition: all targets at 1, at 16 and at 64 callers. Who comes first changes from one to the next.
fn all_of<const N: usize>(
    targets: &mut [Target; N],
    repetition: usize,
    plan: &Plan,
) -> Result<[[Seen; 3]; N]> {
    let mut seen: [[Vec<Seen>; 3]; N] = std::array::from_fn(|_| Default::default());
    for (column, (callers, times)) in CALLERS.into_iter().zip(TIMES).enumerate() {
        for turn in 0..times * N {
            let number = (turn + repetition) % N;
            seen[number][column].push(targets[number].call(callers, plan.span)?);
        }
    }
    Ok(seen.map(|columns| columns.map(|seen| Seen::median(&seen))))
}

/// A figure of a round.
type Figure = fn(&Round) -> f64;

fn row(
    rounds: &[Round],
    goal: &'static str,
    what: &str,
    unit: &'static str,
    judge: Judge,
    of: [Figure; 2],
) -> Row {
    let mut row = Row::new(goal, format!("MCP call, {what}"), unit, judge).beside("bare proxy");
    for round in rounds {
        row.add(of[0](round), of[1](round));
    }
    row
}

const RAW_RATE: [Figure; 3] =
    [|it| it.raw[0].per_second, |it| it.raw[1].per_second, |it| it.raw[2].per_second];

fn rows(rounds: &[Round]) -> Vec<Row> {
    let mut rows = unwaited(rounds);
    rows.extend(awaited(rounds));
    rows.push(foreign(rounds));
    let bar = Judge::Ratio(Better::AtMost, 2.0, 1.5);
    let tail = |what, judge, of| row(rounds, "P6", what, "µs", judge, [of, |it| it.raw[2].p99_us]);
    rows.push(tail("written, 64 callers: p99", bar, |it| it.written[2].p99_us));
    rows.push(tail("(synced), 64 callers: p99", Judge::Shown, |it| it.synced[2].p99_us));
    rows.push(tail("not awaited, 64 callers: p99", Judge::Shown, |it| it.after[2].p99_us));
    rows
}

/// P1: the record is not waited for.
fn unwaited(rounds: &[Round]) -> Vec<Row> {
    let rate = |what, judge, of, raw| row(rounds, "P1", what, "/s", judge, [of, raw]);
    let cost = |what, of| row(rounds, "P1", what, "µs", Judge::Shown, of);
    vec![
        rate(
            "64 callers",
            Judge::Ratio(Better::AtLeast, 0.75, 0.9),
            |it| it.after[2].per_second,
            RAW_RATE[2],
        )
        .note("recorded in the session's log, which is not waited for"),
        rate("16 callers", Judge::Shown, |it| it.after[1].per_second, RAW_RATE[1]),
        rate("one caller", Judge::Shown, |it| it.after[0].per_second, RAW_RATE[0]),
        cost("16 callers: CPU per call", [|it| it.after[1].cpu_us, |it| it.raw[1].cpu_us]),
        cost("64 callers: CPU per call", [|it| it.after[2].cpu_us, |it| it.raw[2].cpu_us]),
        cost("one caller: added p50", [|it| it.after[0].p50_us - it.direct[0].p50_us, raw_added]),
    ]
}

/// P2 and P3: the answer goes out when its record is committed. In brackets, when it is synced to disk.
fn awaited(rounds: &[Round]) -> Vec<Row> {
    let rate = |what, judge, of, raw| row(rounds, "P2", what, "/s", judge, [of, raw]);
    let cost = |what, of| row(rounds, "P2", what, "µs", Judge::Shown, of);
    let added = |what, judge, of| row(rounds, "P3", what, "µs", judge, [of, raw_added]);
    vec![
        rate(
            "written, 64 callers",
            Judge::Ratio(Better::AtLeast, 0.65, 0.8),
            |it| it.written[2].per_second,
            RAW_RATE[2],
        )
        .note("the answer goes out when its record is committed (synchronous=NORMAL; in brackets FULL)"),
        rate("(synced), 64 callers", Judge::Shown, |it| it.synced[2].per_second, RAW_RATE[2]),
        rate("written, 16 callers", Judge::Shown, |it| it.written[1].per_second, RAW_RATE[1]),
        rate("(synced), 16 callers", Judge::Shown, |it| it.synced[1].per_second, RAW_RATE[1]),
        cost("written, 16 callers: CPU per call", [|it| it.written[1].cpu_us, |it| it.raw[1].cpu_us]),
        cost("(synced), 16 callers: CPU per call", [|it| it.synced[1].cpu_us, |it| it.raw[1].cpu_us]),
        added("written, one caller: added p50", Judge::Ratio(Better::AtMost, 2.5, 1.7), |it| {
            it.written[0].p50_us - it.direct[0].p50_us
        })
        .note("over a call without any proxy"),
        added("(synced), one caller: added p50", Judge::Ratio(Better::AtMost, 4.0, 3.0), |it| {
            it.synced[0].p50_us - it.direct[0].p50_us
        }),
    ]
}

fn raw_added(round: &Round) -> f64 {
    round.raw[0].p50_us - round.direct[0].p50_us
}

/// What would stand beside agentgateway.
fn foreign(rounds: &[Round]) -> Row {
    let mut row = Row::new("P4", "MCP call, written, 16 callers", "/s", Judge::Shown)
        .beside("not measured: no agentgateway here")
        .note("agentgateway is in no package registry; the package of that name on PyPI is another program");
    row.figures.extend(rounds.iter().map(|round| round.written[1].per_second));
    row
}
