//! P1 to P6: what it costs that Lanyard stands between an agent and its MCP servers. Beside it a bare proxy, which only
//! passes on, and public programs that put a stdio server on HTTP; and sessions with words waiting, which must not
//! concern the others.

mod answer;
mod bridges;
mod ground;
mod guided;
mod load;
mod servers;

use std::path::Path;

use anyhow::{Context, Result};

pub(crate) use self::servers::play;

use self::ground::{Lanyard, Record};
use self::load::{PATH, Seen, Target, Way};
use crate::process::Reference;
use crate::report::{Better, Judge, Row};
use crate::{Plan, progress};

/// Calls in flight at a time.
const CALLERS: [usize; 3] = [1, 16, 64];
const CALLERS_MAX: usize = 64;

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
    before: [Seen; 3],
}

fn proxying(plan: &Plan, dir: &Path) -> Result<Vec<Row>> {
    let backend = Reference::start("mcp-http", &[])?;
    let [port] = backend.numbers()?;
    let raw = Reference::start("mcp-raw", &[port.to_string()])?;
    let [raw_port] = raw.numbers()?;
    let config = ground::http_server(port);
    let after = Lanyard::start(&dir.join("after"), Record::After, &config)?;
    let before = Lanyard::start(&dir.join("before"), Record::Before, &config)?;
    let ways = plain_ways();
    let mut targets = [
        Target::join("direct", ground::local(port), backend.pid(), &ways)?,
        Target::join("bare proxy", ground::local(raw_port), raw.pid(), &ways)?,
        after.target("Lanyard, recorded after", CALLERS_MAX)?,
        before.target("Lanyard, recorded before", CALLERS_MAX)?,
    ];
    let mut rounds = Vec::new();
    for repetition in 0..plan.repetitions {
        let seen = all_of(&mut targets, repetition, plan)?;
        let [direct, raw, after, before] = seen;
        progress(&format!(
            "gateway {}/{}, {CALLERS_MAX} callers: {:.0}/s, awaited {:.0}/s, bare proxy {:.0}/s, direct {:.0}/s",
            repetition + 1,
            plan.repetitions,
            after[2].per_second,
            before[2].per_second,
            raw[2].per_second,
            direct[2].per_second
        ));
        rounds.push(Round { direct, raw, after, before });
    }
    drop(targets);
    after.stop()?;
    before.stop()?;
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
    let mut seen: [[Option<Seen>; 3]; N] = [[None; 3]; N];
    for (column, callers) in CALLERS.into_iter().enumerate() {
        for turn in 0..N {
            let number = (turn + repetition) % N;
            seen[number][column] = Some(targets[number].call(callers, plan.span)?);
        }
    }
    let whole = |row: [Option<Seen>; 3]| match row {
        [Some(one), Some(some), Some(many)] => Some([one, some, many]),
        [_, _, _] => None,
    };
    let all: Option<Vec<[Seen; 3]>> = seen.into_iter().map(whole).collect();
    all.and_then(|all| all.try_into().ok()).context("a target was left out")
}

fn rows(rounds: &[Round]) -> Vec<Row> {
    let mut rows = Vec::new();
    let fill = |row: Row, ours: fn(&Round) -> f64, raw: fn(&Round) -> f64| {
        let mut row = row.beside("bare proxy");
        for round in rounds {
            row.add(ours(round), raw(round));
        }
        row
    };
    let row = |goal, what: &str, unit, judge| Row::new(goal, format!("MCP call, {what}"), unit, judge);
    let (more, less) = (Better::AtLeast, Better::AtMost);

    let bar = Judge::Ratio(more, 0.75, 0.9);
    rows.push(
        fill(row("P1", "64 callers", "/s", bar), |it| it.after[2].per_second, |it| it.raw[2].per_second)
            .note("recorded in the session's log, which is not waited for"),
    );
    let shown = |what| row("P1", what, "/s", Judge::Shown);
    rows.push(fill(shown("16 callers"), |it| it.after[1].per_second, |it| it.raw[1].per_second));
    rows.push(fill(shown("one caller"), |it| it.after[0].per_second, |it| it.raw[0].per_second));
    let cpu = row("P1", "16 callers: CPU per call", "µs", Judge::Shown);
    rows.push(fill(cpu, |it| it.after[1].cpu_us, |it| it.raw[1].cpu_us));
    let added = row("P1", "one caller: added p50", "µs", Judge::Shown);
    rows.push(fill(added, |it| it.after[0].p50_us - it.direct[0].p50_us, raw_added));

    let bar = Judge::Ratio(more, 0.65, 0.8);
    rows.push(
        fill(
            row("P2", "awaited, 64 callers", "/s", bar),
            |it| it.before[2].per_second,
            |it| it.raw[2].per_second,
        )
        .note("the answer goes out when its event is on disk (synchronous=FULL; the bar was set for NORMAL)"),
    );
    let shown = row("P2", "awaited, 16 callers", "/s", Judge::Shown);
    rows.push(fill(shown, |it| it.before[1].per_second, |it| it.raw[1].per_second));
    let cpu = row("P2", "awaited, 16 callers: CPU per call", "µs", Judge::Shown);
    rows.push(fill(cpu, |it| it.before[1].cpu_us, |it| it.raw[1].cpu_us));

    let bar = Judge::Ratio(less, 4.0, 3.0);
    rows.push(
        fill(
            row("P3", "awaited, one caller: added p50", "µs", bar),
            |it| it.before[0].p50_us - it.direct[0].p50_us,
            raw_added,
        )
        .note("over a call without any proxy; the bar is the one for synchronous=FULL"),
    );
    rows.push(foreign(rounds));
    let bar = Judge::Ratio(less, 2.0, 1.5);
    let tail = row("P6", "awaited, 64 callers: p99", "µs", bar);
    rows.push(fill(tail, |it| it.before[2].p99_us, |it| it.raw[2].p99_us));
    let tail = row("P6", "not awaited, 64 callers: p99", "µs", Judge::Shown);
    rows.push(fill(tail, |it| it.after[2].p99_us, |it| it.raw[2].p99_us));
    rows
}

fn raw_added(round: &Round) -> f64 {
    round.raw[0].p50_us - round.direct[0].p50_us
}

/// What would stand beside agentgateway.
fn foreign(rounds: &[Round]) -> Row {
    let mut row = Row::new("P4", "MCP call, awaited, 16 callers", "/s", Judge::Shown)
        .beside("not measured: no agentgateway here")
        .note("agentgateway is in no package registry; the package of that name on PyPI is another program");
    row.figures.extend(rounds.iter().map(|round| round.before[1].per_second));
    row
}
