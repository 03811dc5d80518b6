//! Attachments: content comes in as it is, messages refer to it by its hash, and a session's readers get it back. The type
//! is what the content shows; a claim is only compared with it.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use lanyard_api::types::{NewPart, UploadedAttachment};
use lanyard_core::attachment::{AttachmentId, claims_image};
use lanyard_core::session::{AttachedContent, PARTS_MAX, PromptPart, Signal, attached_blocks};
use lanyard_core::text::{cut, one_line};
use lanyard_core::{SessionId, refusals};
use lanyard_store::{AttachmentError, Attachments, KeptContent, UploadBounds};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::api::App;
use crate::api::context::{Target, missing, query};
use crate::problem::{Problem, too_slow};
use crate::refusal::refuses;
use crate::server::patience;
use lanyard_base::{error_chain, failpoint};

type Shared = State<Arc<App>>;

/// Pieces of an upload that wait for the disk.
const PIECES_MAX: usize = 8;
/// Characters of a name that an answer shows.
const NAME_CHARS: usize = 200;

/// No script, no style, no request: content that a browser shows can do nothing.
const POLICY: &str = "default-src 'none'; sandbox";

refusals! {
    /// Why content was not kept, or cannot be had.
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum AttachmentRefusal {
        Empty => "attachment_empty", Invalid ("the attachment has no bytes") ("attach a file that has content");
        TooLarge { max: u64 } => "attachment_too_large", Invalid
            ("the attachment is larger than {max} bytes")
            ("attach a smaller file, raise `storage.attachment_bytes`, or name the file's path in the message");
        Full { max: u64 } => "attachments_full", Conflict
            ("attachments take as much room as they may, {max} bytes")
            ("delete sessions with `lanyard rm`, run `lanyard gc`, or raise `storage.attachments_bytes`");
        NotAnImage { found: &'static str } => "attachment_not_an_image", Invalid
            ("the attachment claims to be an image, and its content is {found}")
            ("attach a PNG, JPEG, GIF or WebP image, or give the file the name of what it is");
        Incomplete => "attachment_incomplete", Malformed
            ("the upload broke off before its end") ("send it again");
        NoId { text: String } => "attachment_id_invalid", Malformed
            ("`{text}` is no attachment's id") ("use the `id` of the answer to the upload");
        Unknown { id: AttachmentId } => "attachment_unknown", NotFound
            ("there is no attachment {id} here")
            ("upload the content again; an upload that no message refers to is removed after a day");
        Missing { id: AttachmentId } => "attachment_missing", Gone
            ("the content of attachment {id} is missing from the data folder")
            ("bring it back from a backup, or attach the file again");
        Damaged { id: AttachmentId } => "attachment_damaged", Gone
            ("the content of attachment {id} is not as it was uploaded")
            ("check the disk with `lanyard doctor`; bring it back from a backup, or attach the file again");
        Unusable(#[source] cause: AttachmentError) => "attachment_not_kept", Unavailable
            ("the attachment cannot be kept or read") ("check the disk of the data folder with `lanyard doctor`");
    }
}
refuses!(AttachmentRefusal, error_chain);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UploadQuery {
    name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FetchQuery {
    name: Option<String>,
}

/// Keeps a body as an attachment. The same content has the same id, so a repeat changes nothing.
pub(super) async fn upload(State(app): Shared, request: Request) -> Result<Response, Problem> {
    let UploadQuery { name } = query(request.uri())?;
    let name = name.map(|name| one_line(&name, NAME_CHARS)).filter(|name| !name.is_empty());
    let claim =
        request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let image = claims_image(claim.as_deref(), name.as_deref());
    let kept = receive(&app, request.into_body(), image).await?;
    failpoint::hit("after_upload");
    let KeptContent { id, bytes, content } = kept;
    let media_type = content.media_type.to_owned();
    let uploaded = UploadedAttachment { id, bytes, media_type, image: content.image, name };
    Ok((StatusCode::CREATED, Json(uploaded)).into_response())
}

/// What of a body goes to the disk.
enum UploadPiece {
    Content(Bytes),
    End,
}

async fn receive(app: &Arc<App>, body: Body, image: bool) -> Result<KeptContent, Problem> {
    let (pieces, mut coming) = mpsc::channel(PIECES_MAX);
    let (attachments, bounds, now) = (app.storage.attachments.clone(), bounds(app), app.clock.now());
    let keeping = tokio::task::spawn_blocking(move || {
        let mut upload = attachments.begin(bounds).map_err(refused)?;
        loop {
            match coming.blocking_recv() {
                Some(UploadPiece::Content(piece)) => upload.write(&piece).map_err(refused)?,
                Some(UploadPiece::End) => break,
                // Dropped, it leaves nothing.
                None => return Err(AttachmentRefusal::Incomplete),
            }
        }
        let found = upload.content();
        if image && !found.image && !upload.is_empty() {
            return Err(AttachmentRefusal::NotAnImage { found: found.media_type });
        }
        upload.finish(now).map_err(refused)
    });
    let sent = send_pieces(body, pieces).await;
    let kept = keeping.await.map_err(|_| missing("writer"))?;
    match (kept, sent) {
        (Err(AttachmentRefusal::Incomplete), Err(problem)) => Err(problem),
        (kept, _) => kept.map_err(Problem::from),
    }
}

/// Passes a body on as it comes. Ends early where nobody takes it any more.
async fn send_pieces(body: Body, pieces: mpsc::Sender<UploadPiece>) -> Result<(), Problem> {
    let mut stream = body.into_data_stream();
    loop {
        let next = tokio::time::timeout(patience(), stream.next()).await.map_err(|_| too_slow())?;
        let piece = match next {
            Some(Ok(content)) => UploadPiece::Content(content),
            Some(Err(_)) => return Err(AttachmentRefusal::Incomplete.into()),
            None => UploadPiece::End,
        };
        let ended = matches!(piece, UploadPiece::End);
        if pieces.send(piece).await.is_err() || ended {
            return Ok(());
        }
    }
}

/// The bounds of the config in use.
fn bounds(app: &App) -> UploadBounds {
    let storage = app.config.storage().storage;
    UploadBounds { one_max: storage.attachment_bytes, all_max: storage.attachments_bytes }
}

fn refused(error: AttachmentError) -> AttachmentRefusal {
    match error {
        AttachmentError::Empty => AttachmentRefusal::Empty,
        AttachmentError::TooLarge { max } => AttachmentRefusal::TooLarge { max },
        AttachmentError::Full { max } => AttachmentRefusal::Full { max },
        error @ (AttachmentError::Unknown | AttachmentError::Damaged | AttachmentError::Io { .. }) => {
            AttachmentRefusal::Unusable(error)
        }
    }
}

fn unreadable(id: AttachmentId, error: AttachmentError) -> AttachmentRefusal {
    match error {
        AttachmentError::Unknown => AttachmentRefusal::Unknown { id },
        AttachmentError::Damaged => AttachmentRefusal::Damaged { id },
        error @ (AttachmentError::Empty
        | AttachmentError::TooLarge { .. }
        | AttachmentError::Full { .. }
        | AttachmentError::Io { .. }) => AttachmentRefusal::Unusable(error),
    }
}

/// A session's attachment, for its readers. A browser is told to do nothing with it but show it.
pub(super) async fn fetch(
    State(app): Shared,
    target: Target,
    Path(params): Path<Vec<(String, String)>>,
    uri: Uri,
) -> Result<Response, Problem> {
    let FetchQuery { name } = query(&uri)?;
    let text =
        params.into_iter().find(|(name, _)| name == "attachment").map(|(_, value)| value).unwrap_or_default();
    let id: AttachmentId = text.parse().map_err(|_| AttachmentRefusal::NoId { text })?;
    let (attachments, session) = (app.storage.attachments.clone(), target.0);
    let read = tokio::task::spawn_blocking(move || {
        if !attachments.is_marked(session, id) {
            return Err(AttachmentRefusal::Unknown { id });
        }
        let content = attachments.read(id).map_err(|error| match error {
            AttachmentError::Unknown => AttachmentRefusal::Missing { id },
            other @ (AttachmentError::Damaged
            | AttachmentError::Empty
            | AttachmentError::TooLarge { .. }
            | AttachmentError::Full { .. }
            | AttachmentError::Io { .. }) => unreadable(id, other),
        })?;
        let kind = lanyard_core::attachment::sniff(&content);
        Ok((content, kind))
    });
    let (content, kind) = read.await.map_err(|_| missing("reader"))??;
    let mut response = content.into_response();
    let headers = response.headers_mut();
    let media_type =
        if kind.media_type == "text/plain" { "text/plain; charset=utf-8" } else { kind.media_type };
    for (name, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A purge takes it from the disk; no cache is to keep it.
        (header::CACHE_CONTROL, "private, no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    insert_disposition(headers, kind.image, name.as_deref());
    Ok(response)
}

fn insert_disposition(headers: &mut HeaderMap, image: bool, name: Option<&str>) {
    // Only an image is shown in a page of its own; everything else is saved.
    let way = if image { "inline" } else { "attachment" };
    let name = cut(name.unwrap_or("file"), NAME_CHARS).0;
    let value = format!("{way}; filename*=UTF-8''{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
}

/// What a message refers to, as it is. The content is looked at, and nothing is marked.
pub(super) async fn described(app: &Arc<App>, parts: Vec<NewPart>) -> Result<Vec<PromptPart>, Problem> {
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    // One too many is enough for the refusal.
    let parts: Vec<NewPart> = parts.into_iter().take(PARTS_MAX + 1).collect();
    let attachments = app.storage.attachments.clone();
    let looked = tokio::task::spawn_blocking(move || {
        parts.into_iter().map(|part| describe(&attachments, part)).collect::<Result<Vec<_>, _>>()
    });
    Ok(looked.await.map_err(|_| missing("reader"))??)
}

fn describe(attachments: &Attachments, part: NewPart) -> Result<PromptPart, AttachmentRefusal> {
    let (id, name) = match part {
        NewPart::Link { uri, name } => return Ok(PromptPart::Link { uri, name }),
        NewPart::Attachment { id, name } => (id, name),
    };
    let KeptContent { bytes, content, .. } =
        attachments.describe(id).map_err(|error| unreadable(id, error))?;
    let attached = AttachedContent { id, media_type: content.media_type.to_owned(), bytes, name };
    Ok(if content.image { PromptPart::Image(attached) } else { PromptPart::File(attached) })
}

/// Marks what a message refers to as the session's. Before the event that names it is written.
pub(super) async fn mark(app: &Arc<App>, session: SessionId, parts: &[PromptPart]) -> Result<(), Problem> {
    let ids: Vec<AttachmentId> = parts.iter().filter_map(PromptPart::attached).map(|held| held.id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let (attachments, now) = (app.storage.attachments.clone(), app.clock.now());
    let marked = tokio::task::spawn_blocking(move || {
        attachments.mark(session, &ids, now).map_err(|error| match (error, ids.first()) {
            (AttachmentError::Unknown, Some(id)) => AttachmentRefusal::Unknown { id: *id },
            (error, _) => AttachmentRefusal::Unusable(error),
        })
    });
    marked.await.map_err(|_| missing("writer"))??;
    failpoint::hit("after_attachment_mark");
    Ok(())
}

/// What an agent says of its own messages names attachments of its own session only.
pub(super) fn are_own(app: &App, session: SessionId, signal: &Signal) -> Result<(), Problem> {
    let named: Vec<AttachmentId> = if let Signal::Said { parts, .. } = signal {
        parts.iter().filter_map(PromptPart::attached).map(|held| held.id).collect()
    } else if let Signal::ToolReturned { content, .. } = signal {
        attached_blocks(content)
    } else {
        return Ok(());
    };
    match named.into_iter().find(|id| !app.storage.attachments.is_marked(session, *id)) {
        Some(id) => Err(AttachmentRefusal::Unknown { id }.into()),
        None => Ok(()),
    }
}
