//! The journal: through the daemon when one runs, since it belongs to that; else opened here.

use lanyard_api::types::{CheckReport, DaemonStatus, JournalStatus, Reason, Rebuilt};
use lanyard_client::Route;

use super::Finding;
use super::service::Running;
use crate::context::Context;
use crate::failure::Failure;
use crate::host::DaemonHost;

const NAME: &str = "journal";

pub(super) async fn check(
    context: &Context,
    host: &DaemonHost,
    running: &Running,
    rebuild: bool,
) -> Vec<Finding> {
    match running {
        Running::Answers(..) => {
            through_daemon(context, rebuild).await.unwrap_or_else(|failure| vec![refused(failure)])
        }
        Running::Mute => vec![Finding::warn(NAME, "not looked at", "see the daemon first")],
        Running::Nobody { .. } if !context.home.journal().exists() && context.home.token().exists() => {
            vec![Finding::fail(
                NAME,
                format!(
                    "{} is missing, although a daemon has used this folder before",
                    context.home.journal().display()
                ),
                "bring the file back, `lanyard restore FILE`, or start empty with `lanyard up --new-journal`",
            )]
        }
        Running::Nobody { .. } if !context.home.journal().exists() => {
            vec![Finding::ok(NAME, "there is none yet; the first start makes one")]
        }
        Running::Nobody { .. } => alone(context, host, rebuild),
    }
}

async fn through_daemon(context: &Context, rebuild: bool) -> Result<Vec<Finding>, Failure> {
    let Some(mut client) = context.client_if_running().await? else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    if rebuild {
        let done: Rebuilt = client.post_patiently(&Route::to(&["rebuild"]), &Reason::default()).await?;
        findings.push(rebuilt(done.sessions));
    }
    let report: CheckReport = client.get_patiently(&Route::to(&["check"])).await?;
    findings.extend(told(&report));
    let status: DaemonStatus = client.get(&Route::to(&["status"])).await?;
    findings.extend(too_large(&status.journal));
    findings.extend(status.storage_error.map(|what| Finding::fail(NAME, what, LOST)));
    Ok(findings)
}

/// A journal beyond its limit.
fn too_large(journal: &JournalStatus) -> Option<Finding> {
    const MEBI: u64 = 1 << 20;
    let total = journal.size.total();
    (journal.alarm_bytes > 0 && total > journal.alarm_bytes).then(|| {
        let what = format!("{} MB, more than its limit of {} MB", total / MEBI, journal.alarm_bytes / MEBI);
        Finding::warn(
            NAME,
            what,
            "delete sessions with `lanyard rm`, set [retention], then `lanyard gc --compact`",
        )
    })
}

fn alone(context: &Context, host: &DaemonHost, rebuild: bool) -> Vec<Finding> {
    let check = match (host.check_journal)(&context.home.journal(), rebuild) {
        Ok(check) => check,
        Err(error) => return vec![refused(error.into())],
    };
    let mut findings = Vec::new();
    match check.rebuilt {
        Some(Ok(sessions)) => findings.push(rebuilt(sessions)),
        Some(Err(error)) => findings.push(Finding::fail(NAME, format!("not rebuilt: {error}"), COPY)),
        None => {}
    }
    match check.report {
        Ok(report) => findings.extend(told(&report)),
        Err(error) => findings.push(Finding::fail(NAME, format!("cannot be read: {error}"), COPY)),
    }
    findings
}

const LOST: &str = "nothing is acknowledged; save what the daemon still has with `lanyard backup FILE`";
const COPY: &str = "copy the data folder before anything else, then check the disk it is on";

fn rebuilt(sessions: u64) -> Finding {
    Finding::ok(NAME, format!("listings and indexes of {sessions} sessions were made again from the log"))
}

fn told(report: &CheckReport) -> Vec<Finding> {
    let size = format!(
        "{} sessions, {} events, {} kB",
        report.sessions,
        report.events,
        report.bytes.div_ceil(1_024)
    );
    if report.structure.is_empty() && report.damage.is_empty() {
        return vec![Finding::ok(NAME, format!("{size}, nothing is damaged"))];
    }
    let structure = report.structure.iter().map(|what| Finding::fail(NAME, what, mend_structure(what)));
    let damage = report.damage.iter().map(|damage| {
        let whose = damage.session.map_or_else(|| "unknown session".to_owned(), |session| session.to_string());
        let what =
            format!("{whose}, events {} to {}: {}", damage.first_seq, damage.last_seq, damage.what);
        let fix = match (damage.session, damage.first_seq.checked_sub(1)) {
            (Some(session), Some(good)) if good > 0 => {
                format!("the rest stays readable; to go on from before the damage: `lanyard fork {session} --at {good}`")
            }
            _ => "the rest stays readable; copy the data folder, then check the disk it is on".to_owned(),
        };
        Finding::fail(NAME, what, fix)
    });
    structure.chain(damage).chain([Finding::ok(NAME, format!("{size} can be read"))]).collect()
}

fn mend_structure(what: &str) -> &'static str {
    if what.contains("(wal_") {
        return "compare with a backup (`lanyard restore`); check the disk; a restart ends this notice";
    }
    "copy the data folder, then make what is derived again: `lanyard doctor --rebuild`"
}

fn refused(failure: Failure) -> Finding {
    match failure {
        Failure::Told { problem, .. } => Finding::fail(NAME, problem.title, problem.advice),
        Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe => Finding::fail(NAME, "not looked at", ""),
    }
}
