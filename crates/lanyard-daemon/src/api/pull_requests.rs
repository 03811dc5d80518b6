//! Pull requests for the branch of a session's workspace, opened by the user's own `gh` or `glab`. All of it is done aside.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lanyard_api::agents::known;
use lanyard_api::types::{NewPullRequest, PullRequest, PullRequestOffer};
use lanyard_core::text::{BODY_BYTES_MAX, NAME_CHARS_MAX};
use lanyard_git::publish::{NewRequest, Outlet, PublishError, open_request};

use crate::api::App;
use crate::api::context::{Change, Target, load};
use crate::api::snapshots::{aside, workspace_of};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

pub(super) async fn offer(State(app): Shared, target: Target) -> Result<Json<PullRequestOffer>, Problem> {
    let session = load(&app, target.0).await?.session;
    let none = |why: String| PullRequestOffer {
        program: None,
        branch: None,
        remote: None,
        uncommitted: false,
        why: Some(why),
    };
    let Ok(workspace) = workspace_of(&session) else {
        return Ok(Json(none("the session's workspace is no folder".to_owned())));
    };
    let outlet = match aside(move || Outlet::of(&workspace)).await? {
        Ok(outlet) => outlet,
        Err(error) => return Ok(Json(none(error.to_string()))),
    };
    let program = outlet.program(is_there);
    Ok(Json(PullRequestOffer {
        program: program.map(|program| program.name().to_owned()),
        remote: Some(outlet.shown_address()),
        uncommitted: outlet.uncommitted,
        why: program.is_none().then(|| PublishError::NoProgram.to_string()),
        branch: Some(outlet.branch),
    }))
}

/// One at a time for a session. What is open already is answered, so that a request that is repeated after a crash opens no
/// second one; a keyed repeat gets the first answer from the log of changes.
pub(super) async fn open(
    State(app): Shared,
    target: Target,
    change: Change<NewPullRequest>,
) -> Result<Response, Problem> {
    let NewPullRequest { title, body, base, draft, remote } = change.body;
    check(&title, &body, base.as_deref())?;
    let session = load(&app, target.0).await?.session;
    let workspace = workspace_of(&session)?;
    let lock = app.underway.lock(blake3_half(&target.0.to_string()));
    let _one = lock.lock().await;
    let scratch: PathBuf = app.data_dir.join("push");
    let done = aside(move || {
        let outlet = Outlet::of(&workspace)?;
        let program = outlet.program(is_there).ok_or(PublishError::NoProgram)?;
        let wanted = NewRequest { title, body, base, draft };
        let opened = open_request(&outlet, &wanted, remote.as_deref(), (program, &scratch))?;
        Ok::<_, PublishError>((outlet, opened))
    });
    let (outlet, opened) = done.await??;
    let answer = PullRequest {
        session: target.0,
        branch: outlet.branch,
        commit: outlet.commit,
        url: opened.address,
        existing: opened.existing,
    };
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

fn is_there(program: &str) -> bool {
    std::env::var("PATH").is_ok_and(|path| known::find(program, &path).is_some())
}

fn check(title: &str, body: &str, base: Option<&str>) -> Result<(), Problem> {
    let bad = |what: &str, advice: &str| {
        Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "pull_request_bad", what, advice))
    };
    if title.trim().is_empty() || title.chars().any(char::is_control) {
        return bad("the title is empty or has more than one line", "give one line");
    }
    if title.chars().count() > NAME_CHARS_MAX || body.len() > BODY_BYTES_MAX / 16 || body.contains('\0') {
        return bad(
            "the title or the text is too long",
            "shorten it; more can be written on the page of the request",
        );
    }
    if base.is_some_and(|base| base.is_empty() || base.starts_with('-') || base.chars().any(char::is_control))
    {
        return bad("the base is no name of a branch", "name a branch of the remote, or leave it out");
    }
    Ok(())
}

/// The place of a session among the requests under way; keys of clients are hashed with more and never meet it.
fn blake3_half(session: &str) -> [u8; 16] {
    let hash = blake3::hash(format!("pull request\0{session}").as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}
