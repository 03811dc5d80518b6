//! Mail, workers, ids and the emergency stop over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{
    Halt, HaltReceipt, HaltState, MailPage, NewMail, Reason, ReportKind, RunReport, SendAgain, TaskView,
    WorkerList,
};
use lanyard_core::task::{Mail, MailKind, MailTo, TaskState};
use lanyard_core::{MailId, SessionId};
use lanyard_store::MailFilter;
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Change, Target, query};
use crate::api::plans::{on_families_disk, with_reader};
use crate::families::{By, FamilyError, Said, find, plans};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

const PAGE_DEFAULT: usize = 100;
pub(super) const PAGE_MAX: usize = 500;

#[derive(Debug, Default, Deserialize)]
struct Listed {
    #[serde(rename = "box")]
    mailbox: Option<String>,
    dead: Option<bool>,
    settled: Option<bool>,
    cursor: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<MailPage>, Problem> {
    let asked: Listed = query(&uri)?;
    let limit = asked.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let after = asked.cursor.as_deref().map(cursor).transpose()?;
    let mut mail = on_families_disk(&app, move |store| {
        let to = asked.mailbox.as_deref().map(|name| find::box_named(store, name)).transpose()?;
        // Without a word on it: what somebody should look at.
        let settled = asked.settled.or_else(|| asked.dead.is_none().then_some(false));
        let filter = MailFilter { to, settled: settled.filter(|_| asked.dead.is_none()), dead: asked.dead };
        Ok(store.mails(&filter, after, limit + 1)?)
    })
    .await?;
    let more = mail.len() > limit;
    mail.truncate(limit);
    let next = mail.last().filter(|_| more).map(|last| format!("{}.{}", last.to, last.seq));
    Ok(Json(MailPage { mail, next }))
}

fn cursor(text: &str) -> Result<(MailTo, u64), Problem> {
    let parts = text.split_once('.').and_then(|(to, seq)| Some((to.parse().ok()?, seq.parse().ok()?)));
    parts.ok_or_else(|| {
        Problem::bad_request("cursor_bad", "the cursor cannot be read", "begin again without one")
    })
}

fn mail_id(text: &str) -> Result<MailId, FamilyError> {
    text.parse().map_err(|_| FamilyError::NoMail(text.to_owned()))
}

pub(super) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<Mail>, Problem> {
    let found = on_families_disk(&app, move |store| {
        store.mail(mail_id(&id)?)?.ok_or_else(|| FamilyError::NoMail(id.clone()))
    });
    Ok(Json(found.await?))
}

pub(super) async fn acknowledge(
    State(app): Shared,
    Path(id): Path<String>,
    change: Change<Reason>,
) -> Result<Json<Mail>, Problem> {
    let by = change.actor.name.clone();
    let how = change.body.reason.unwrap_or_else(|| format!("{by} has read it"));
    let mail = app.families.ask(move |owner| owner.acknowledge(mail_id(&id)?, None, &how));
    Ok(Json(mail.await?))
}

pub(super) async fn again(
    State(app): Shared,
    Path(id): Path<String>,
    change: Change<SendAgain>,
) -> Result<Json<Mail>, Problem> {
    let to = change.body.to;
    let mail = app.families.ask(move |owner| owner.send_again(mail_id(&id)?, to.as_deref()));
    Ok(Json(mail.await?))
}

/// A person's message to a task's worker.
pub(super) async fn send(
    State(app): Shared,
    Path(task): Path<String>,
    change: Change<NewMail>,
) -> Result<Response, Problem> {
    let (by, text) = (change.by(), change.body.text);
    let key = change.keys.first().map(|key| mail_of_key(key.key));
    let mail = app.families.ask(move |owner| {
        owner.named(&task)?;
        owner.message(&task, &text, key, &by)
    });
    Ok((StatusCode::CREATED, Json(mail.await?)).into_response())
}

/// The id of a message that was asked for under a key.
const fn mail_of_key(key: [u8; 16]) -> MailId {
    MailId::from_u128(u128::from_be_bytes(key))
}

/// What a run says of its task.
pub(super) async fn report(
    State(app): Shared,
    target: Target,
    change: Change<RunReport>,
) -> Result<Json<TaskView>, Problem> {
    let by = By { actor: change.actor.clone(), session: None };
    let key = change.keys.first().map(|key| mail_of_key(key.key));
    let RunReport { run_token, kind, text, evidence } = change.body;
    let word = |kind| Said::Word { kind, text: text.clone() };
    let said = match kind {
        ReportKind::Progress => word(MailKind::Progress),
        ReportKind::Question => word(MailKind::Question),
        ReportKind::Error => word(MailKind::Error),
        ReportKind::Completed => Said::Completed { summary: text, evidence },
        ReportKind::Failed => Said::Failed { why: text },
    };
    let session: SessionId = target.0;
    let reported = app.families.ask(move |owner| owner.run_report(session, &run_token, said, key, &by));
    let id = reported.await?;
    Ok(Json(with_reader(&app, move |_, reader| reader.view(id)).await?))
}

#[derive(Debug, Default, Deserialize)]
struct Workers {
    plan: Option<String>,
    #[serde(default)]
    all: bool,
}

pub(super) async fn workers(State(app): Shared, uri: Uri) -> Result<Json<WorkerList>, Problem> {
    let asked: Workers = query(&uri)?;
    let workers = with_reader(&app, move |store, reader| {
        let plan = match &asked.plan {
            Some(name) => Some(plans::find(store, name, None)?.1.id),
            None => None,
        };
        let mut rows = reader.workers()?;
        if asked.all {
            let filter =
                lanyard_store::TaskFilter { ended: Some(true), ..lanyard_store::TaskFilter::default() };
            for task in store.tasks(&filter, None, PAGE_MAX)? {
                rows.extend(reader.worker_row(&task)?);
            }
        }
        rows.retain(|row| plan.is_none_or(|plan| row.plan == Some(plan)));
        rows.sort_by_key(|row| (row.task_state != TaskState::Running, row.task));
        Ok(rows)
    });
    Ok(Json(WorkerList { workers: workers.await? }))
}

pub(super) async fn halted(State(app): Shared) -> Result<Json<HaltState>, Problem> {
    Ok(Json(app.engine.halting.how().into()))
}

pub(super) async fn halt(State(app): Shared, change: Change<Halt>) -> Result<Response, Problem> {
    let by = change.by();
    let Halt { what, reason, now } = change.body;
    let all = what.is_none();
    let stopped = app.families.ask(move |owner| match what {
        Some(what) => owner.halt(&what, reason.as_deref(), now, &by),
        None => owner.halt_all(reason.as_deref(), now, &by),
    });
    let stopped = stopped.await?;
    let receipt = HaltReceipt { tasks: stopped.tasks, sessions: stopped.sessions, halted: all };
    Ok((StatusCode::ACCEPTED, Json(receipt)).into_response())
}

pub(super) async fn lift(State(app): Shared, change: Change<Reason>) -> Result<Json<HaltState>, Problem> {
    let (by, reason) = (change.by(), change.body.reason);
    let lifted = app.families.ask(move |owner| owner.lift(reason.as_deref(), &by)).await?;
    Ok(Json(lifted.into()))
}
