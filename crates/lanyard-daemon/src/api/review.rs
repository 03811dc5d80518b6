//! The review of a session's changes: drafts, marks, and one message made of comments. Files are read here, so that what
//! the engine decides on arrives as data.

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use lanyard_api::types::{CommentEdit, CommentView, NewComment, NewReview, NewViewed, Reason, ReviewView};
use lanyard_core::session::{
    AgentChoice, Command, Delivery, DiffSide, DraftComment, LineAnchor, LineSpan, Message, PlacedComment,
    QUOTE_BYTES_MAX, Refusal, ReviewBase, ReviewCommand, ReviewComment, SPAN_LINES_MAX, Session, locate,
};
use lanyard_core::{CommentId, NoteId, TurnId};
use lanyard_git::snapshot::top_of;
use lanyard_git::workspace_files::{self, FileError};

use crate::api::App;
use crate::api::agents::{can_take_turn, not_open_elsewhere};
use crate::api::context::{Change, Target, WriterEpoch, load};
use crate::api::diff::base_of;
use crate::api::sessions::{command_on, not_rolling_back, repeated};
use crate::api::snapshots::{aside, done_before, workspace_of};
use crate::api::turns::answer;
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, AskError, Request, Sending};

type Answer = Result<Response, Problem>;
type Shared = State<Arc<App>>;

/// Larger files have no anchors: their comments count as unmoved.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

pub(super) async fn get(State(app): Shared, target: Target) -> Result<Json<ReviewView>, Problem> {
    let session = load(&app, target.0).await?.session;
    let comments: Vec<ReviewComment> = session.review.comments.clone();
    let anchors = anchors(&session, comments.iter()).await;
    let drafts = session.review.drafts().count();
    let view = |comment: ReviewComment| {
        let anchor = anchors.get(&comment.draft.comment).copied().unwrap_or(LineAnchor::Same);
        CommentView { comment, anchor }
    };
    Ok(Json(ReviewView {
        session: session.id,
        comments: comments.into_iter().map(view).collect(),
        drafts,
        viewed: session.review.viewed.into(),
    }))
}

pub(super) async fn add(State(app): Shared, target: Target, change: Change<NewComment>) -> Answer {
    // A repeat is no reason to read files that may have changed since.
    if let Some(outcome) = done_before(&app, &change.keys).await? {
        return Ok(repeated(StatusCode::CREATED, outcome));
    }
    let session = load(&app, target.0).await?.session;
    let NewComment { path, side, first, last, text, quote, base } = change.body.clone();
    let lines = LineSpan { first, last: last.unwrap_or(first) };
    let base = base_of(&app, &session, base.as_deref()).await?;
    let quote = match quote {
        Some(quote) => quote,
        None => quote_of(&app, &session, (&path, side), lines, &base).await?,
    };
    let comment = CommentId::mint(app.clock.now(), app.clock.random());
    let draft = DraftComment { comment, path, side, lines, quote, text, base };
    let command = Command::Review(ReviewCommand::Draft(Box::new(draft)));
    command_on(&app, target, change, command, StatusCode::CREATED).await
}

pub(super) async fn edit(
    State(app): Shared,
    target: Target,
    Path(path): Path<HashMap<String, String>>,
    change: Change<CommentEdit>,
) -> Answer {
    let comment = comment_in(&path)?;
    let command = Command::Review(ReviewCommand::Edit { comment, text: change.body.text.clone() });
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn remove(
    State(app): Shared,
    target: Target,
    Path(path): Path<HashMap<String, String>>,
    change: Change<Reason>,
) -> Answer {
    let command = Command::Review(ReviewCommand::Remove { comment: comment_in(&path)? });
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn view(State(app): Shared, target: Target, change: Change<NewViewed>) -> Answer {
    let NewViewed { path, hash } = change.body.clone();
    let command = Command::Review(ReviewCommand::View { path, hash });
    command_on(&app, target, change, command, StatusCode::OK).await
}

/// Once only: the turn and the marks of its comments are one commit, and a comment with a mark is not sent again.
pub(super) async fn send(
    State(app): Shared,
    target: Target,
    WriterEpoch(epoch): WriterEpoch,
    change: Change<NewReview>,
) -> Answer {
    not_rolling_back(&app, target.0)?;
    let NewReview { comments, message, delivery, writer_epoch } = change.body;
    let session = load(&app, target.0).await?.session;
    can_take_turn(&app, &session)?;
    not_open_elsewhere(&app, &session, false).await?;
    // Without names all drafts are meant; none are left when the request is a repeat, and the engine tells which it is.
    let wanted =
        comments.unwrap_or_else(|| session.review.drafts().map(|comment| comment.draft.comment).collect());
    let held = session.review.comments.iter().filter(|comment| wanted.contains(&comment.draft.comment));
    let anchors = anchors(&session, held).await;
    let placed = |comment: CommentId| {
        let anchor = anchors.get(&comment).copied().unwrap_or(LineAnchor::Same);
        PlacedComment { comment, anchor }
    };
    let message = Message {
        turn: TurnId::mint(app.clock.now(), app.clock.random()),
        note: NoteId::mint(app.clock.now(), app.clock.random()),
        client_turn_id: None,
        prompt: message,
        parts: Vec::new(),
        delivery: delivery.unwrap_or(Delivery::Queue),
        memory: None,
        choice: AgentChoice::default(),
        forced: false,
        take_over: false,
        review: Some(wanted.into_iter().map(placed).collect()),
    };
    let epoch = writer_epoch.or(epoch);
    let intervention = app.config.now().config.intervention.of(&change.actor);
    let sending = Sending { message, writer_epoch: epoch, client: None, intervention, again: false };
    let ask = Ask::Send { session: target.0, sending: Box::new(sending) };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    let reply = app.engine.ask(request).await?;
    super::writer::wrote(&app, target.0, epoch).await?;
    answer(&app, target, reply, None).await
}

fn comment_in(path: &HashMap<String, String>) -> Result<CommentId, Problem> {
    let named = path.get("comment").map(String::as_str).unwrap_or_default();
    named.parse().map_err(|error| {
        Problem::bad_request(
            "comment_id_bad",
            format!("`{named}` is no id of a comment: {error}"),
            "list the comments with `lanyard review`",
        )
    })
}

/// Where the lines of comments are in the workspace. What cannot be looked at counts as unmoved; what is gone is stale.
async fn anchors<'a>(
    session: &Session,
    comments: impl Iterator<Item = &'a ReviewComment>,
) -> HashMap<CommentId, LineAnchor> {
    let mut found = HashMap::new();
    let comments: Vec<&ReviewComment> =
        comments.filter(|comment| comment.draft.side == DiffSide::New).collect();
    if comments.is_empty() {
        return found;
    }
    let Ok(workspace) = workspace_of(session) else { return found };
    let Ok(Ok(top)) = aside(move || top_of(&workspace)).await else { return found };
    let mut files: HashMap<&str, Result<String, FileError>> = HashMap::new();
    for comment in comments {
        let draft = &comment.draft;
        if !files.contains_key(draft.path.as_str()) {
            files.insert(&draft.path, file(&top, &draft.path).await);
        }
        let anchor = match files.get(draft.path.as_str()) {
            Some(Ok(text)) => locate(text, &draft.quote, draft.lines),
            Some(Err(FileError::Missing | FileError::NotRegular)) => LineAnchor::Stale,
            Some(Err(
                FileError::Outside { .. }
                | FileError::OfGit
                | FileError::TooLarge { .. }
                | FileError::Slow
                | FileError::Io(_),
            ))
            | None => LineAnchor::Same,
        };
        found.insert(draft.comment, anchor);
    }
    found
}

async fn file(top: &FilePath, path: &str) -> Result<String, FileError> {
    let bytes = workspace_files::read(top, &top.join(path), FILE_BYTES_MAX).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of lines: from the workspace, or from the base for the side before the change.
async fn quote_of(
    app: &Arc<App>,
    session: &Session,
    (path, side): (&str, DiffSide),
    lines: LineSpan,
    base: &ReviewBase,
) -> Result<String, Problem> {
    if lines.first == 0 || lines.is_empty() || lines.len() > SPAN_LINES_MAX {
        return Err(AskError::Refused(Refusal::LineRange { max: SPAN_LINES_MAX }).into());
    }
    let workspace = workspace_of(session)?;
    let text = match side {
        DiffSide::New => {
            let top = aside(move || top_of(&workspace)).await??;
            file(&top, path).await.map_err(|error| no_lines(path, lines, &error.to_string()))?
        }
        DiffSide::Old => {
            let (checkpoints, commit, path) = (app.checkpoints.clone(), base.commit.clone(), path.to_owned());
            let max = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
            let name = path.clone();
            let bytes = aside(move || checkpoints.file_at(&workspace, &commit, &path, max)).await??;
            let bytes = bytes.ok_or_else(|| no_lines(&name, lines, "the base has no such file"))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let skip = usize::try_from(lines.first).unwrap_or(usize::MAX).saturating_sub(1);
    let count = usize::try_from(lines.len()).unwrap_or(usize::MAX);
    let quoted: Vec<&str> = text.lines().skip(skip).take(count).collect();
    if quoted.len() < count {
        let has = format!("the file has {} lines", text.lines().count());
        return Err(no_lines(path, lines, &has));
    }
    let quote = quoted.join("\n");
    if quote.len() > QUOTE_BYTES_MAX {
        return Err(AskError::Refused(Refusal::TooLong {
            field: "quote",
            max: QUOTE_BYTES_MAX,
            unit: "bytes",
        })
        .into());
    }
    Ok(quote)
}

fn no_lines(path: &str, lines: LineSpan, why: &str) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "lines_not_found",
        format!("{path}:{lines} cannot be quoted: {why}"),
        "name a file below the top of the repository, and lines that it has",
    )
}
