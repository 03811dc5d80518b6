//! `lanyard review`: comments on a session's changes, sent to its agent as one message.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{
    CommentEdit, CommentView, NewComment, NewPullRequest, NewReview, PullRequest, PullRequestOffer, Reason,
    ReviewView,
};
use lanyard_core::naming::IdPart;
use lanyard_core::session::{Delivery, DiffSide, LineAnchor, SessionView};
use lanyard_core::{CommentId, Outcome};
use serde_json::json;

use super::send::{may_wait, show, when_parser};
use super::target::{Target, words_or_stdin};
use super::watch::EXIT_CODES;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::{count, one_line};

const ABOUT: &str = "\
Comments are drafts until they are sent, and every operator of the session sees them. `send` makes
one message of all drafts, with path, lines, quoted code and comment; it is sent once, whatever
fails on the way. Then each comment has a state:
  draft               not sent
  sent with turn 3    its turn runs; a message that waits has no number yet
  answered by turn 3  that turn completed
  not answered        that turn failed, or was cancelled or lost: name the comment to send it again
A comment moves with its lines. MOVED says where the text is now, `changed since` that it is no
longer in the file.

Examples:
  lanyard diff fix-login --turn
  lanyard review add fix-login src/login.rs:42 \"Why not return early?\"
  lanyard review add fix-login src/login.rs:50-53 \"Move this into a function.\"
  lanyard review fix-login
  lanyard review send fix-login
  lanyard review send fix-login --when next --message \"Then run the tests.\"
  lanyard review rm fix-login 4tqkff
  lanyard review pr fix-login --title \"Fix the login\"

";

const COLUMNS: [Column; 6] = [
    Column::whole("COMMENT"),
    Column::elastic("LINES", 12),
    Column::whole("MOVED"),
    Column::whole("STATE"),
    Column::elastic("FROM", 5),
    Column::elastic("TEXT", 20),
];

/// Comment on a session's changes, and send the comments as one message
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{ABOUT}{EXIT_CODES}"), args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct ReviewArgs {
    /// The session: its id or one of its aliases
    #[arg(value_name = "ID", required = true, value_parser = NonEmptyStringValueParser::new())]
    id: Option<String>,
    #[command(subcommand)]
    verb: Option<ReviewVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum ReviewVerb {
    /// Keep a comment on a line or a range of lines as a draft
    Add {
        #[command(flatten)]
        target: Target,
        /// File and lines, as `lanyard diff` shows them
        #[arg(value_name = "PATH:LINE[-END]", value_parser = place)]
        place: FileLines,
        /// The comment, quoted or not; `-` reads it from stdin
        #[arg(required = true)]
        text: Vec<String>,
        /// The lines are those before the change
        #[arg(long)]
        old: bool,
        /// Base of the diff: `turn`, `session`, `branch` or a checkpoint
        #[arg(long, value_name = "BASE")]
        base: Option<String>,
    },
    /// Change the text of a comment that was not sent
    Edit {
        #[command(flatten)]
        target: Target,
        comment: String,
        /// The new text, quoted or not; `-` reads it from stdin
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Remove a comment
    Rm {
        #[command(flatten)]
        target: Target,
        comment: String,
    },
    /// Send comments as one message: all drafts, or those that are named
    Send {
        #[command(flatten)]
        target: Target,
        comments: Vec<String>,
        /// When the agent gets the message, while a turn is running [default: next]
        #[arg(long, value_parser = when_parser())]
        when: Option<Delivery>,
        /// Words in front of the comments
        #[arg(long)]
        message: Option<String>,
        /// Do not wait: print the turn's id
        #[arg(long, short)]
        detach: bool,
    },
    /// Push the branch and open a pull request with your `gh` or `glab`
    Pr {
        #[command(flatten)]
        target: Target,
        /// The title of the pull request [default: the session's title]
        #[arg(long)]
        title: Option<String>,
        /// The text of the pull request
        #[arg(long, default_value = "")]
        body: String,
        /// The branch to merge into [default: the remote's default branch]
        #[arg(long)]
        base: Option<String>,
        /// Mark it as a draft
        #[arg(long)]
        draft: bool,
    },
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileLines {
    path: String,
    first: u32,
    last: u32,
}

fn place(text: &str) -> Result<FileLines, String> {
    let wrong = || format!("`{text}` is not PATH:LINE or PATH:LINE-END, as in src/login.rs:42-45");
    let (path, lines) = text.rsplit_once(':').ok_or_else(wrong)?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    match (number(first), number(last)) {
        (Some(first), Some(last)) if !path.is_empty() && first <= last => {
            Ok(FileLines { path: path.to_owned(), first, last })
        }
        (Some(_) | None, _) => Err(wrong()),
    }
}

impl ReviewArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match (self.verb, self.id) {
            (None, Some(id)) => list(context, &Target::of(id)).await,
            (None, None) => Err(Failure::usage("no session is named", "lanyard review ID")),
            (Some(ReviewVerb::Add { target, place, text, old, base }), _) => {
                add(context, &target, place, words_or_stdin(&text)?, old, base).await
            }
            (Some(ReviewVerb::Edit { target, comment, text }), _) => {
                let mut client = context.client().await?;
                let id = named(&mut client, &target, &comment).await?.to_string();
                let body = CommentEdit { text: words_or_stdin(&text)? };
                let outcome: Outcome =
                    client.patch(&target.route(&["review", "comments", &id]), &body).await?;
                context.out.receipt(&outcome, None, &format!("{id} was changed"))
            }
            (Some(ReviewVerb::Rm { target, comment }), _) => {
                let mut client = context.client().await?;
                let id = named(&mut client, &target, &comment).await?.to_string();
                let route = target.route(&["review", "comments", &id]);
                let outcome: Outcome = client.delete(&route, &Reason::default()).await?;
                context.out.receipt(&outcome, None, &format!("{id} was removed"))
            }
            (Some(ReviewVerb::Send { target, comments, when, message, detach }), _) => {
                let review = NewReview {
                    delivery: when,
                    message: message.unwrap_or_default(),
                    ..NewReview::default()
                };
                send(context, &target, &comments, review, detach).await
            }
            (Some(ReviewVerb::Pr { target, title, body, base, draft }), _) => {
                let wanted =
                    NewPullRequest { title: title.unwrap_or_default(), body, base, draft, remote: None };
                pull_request(context, &target, wanted).await
            }
        }
    }
}

async fn list(context: &Context, target: &Target) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let review: ReviewView = client.get_patiently(&target.route(&["review"])).await?;
    if context.out.is_json() {
        let beside = json!({ "drafts": review.drafts, "viewed": review.viewed });
        return context.out.list_with(&review.comments, None, &beside);
    }
    if review.comments.is_empty() {
        context
            .out
            .note(&format!("no comments; add one with `lanyard review add {} PATH:LINE TEXT`", target.id));
        return Ok(());
    }
    let cells: Vec<Vec<String>> = review.comments.iter().map(cell).collect();
    context.out.data(&table(&COLUMNS, &cells, context.out.columns))?;
    if review.drafts > 0 {
        let drafts = count(review.drafts, "draft");
        context.out.note(&format!("{drafts}; send with `lanyard review send {}`", target.id));
    }
    Ok(())
}

fn cell(view: &CommentView) -> Vec<String> {
    let draft = &view.comment.draft;
    let side = if draft.side == DiffSide::Old { " (old)" } else { "" };
    let moved = match view.anchor {
        LineAnchor::Same => String::new(),
        LineAnchor::Moved { now } => format!("to {now}"),
        LineAnchor::Stale => "changed since".to_owned(),
    };
    vec![
        draft.comment.to_string(),
        format!("{}:{}{side}", one_line(&draft.path), draft.lines),
        moved,
        view.state_words(),
        one_line(&view.comment.author.name),
        one_line(&draft.text),
    ]
}

async fn add(
    context: &Context,
    target: &Target,
    place: FileLines,
    text: String,
    old: bool,
    base: Option<String>,
) -> Result<(), Failure> {
    let FileLines { path, first, last } = place;
    let side = if old { DiffSide::Old } else { DiffSide::New };
    let sentence =
        format!("the comment on {path} is a draft; send it with `lanyard review send {}`", target.id);
    let body = NewComment { path, side, first, last: Some(last), text, quote: None, base };
    let mut client = context.client().await?;
    let outcome: Outcome = client.post_patiently(&target.route(&["review", "comments"]), &body).await?;
    let id = outcome.comment.map(|comment| comment.to_string());
    context.out.receipt(&outcome, id.as_deref(), &sentence)
}

async fn send(
    context: &Context,
    target: &Target,
    comments: &[String],
    review: NewReview,
    detach: bool,
) -> Result<(), Failure> {
    let mut client = context.client().await?;
    if !detach {
        let view: SessionView = client.get(&target.route(&[])).await?;
        may_wait(&view)?;
    }
    let mut ids = Vec::new();
    for comment in comments {
        ids.push(named(&mut client, target, comment).await?);
    }
    let review = NewReview { comments: Some(ids).filter(|ids| !ids.is_empty()), ..review };
    let receipt = client.post_patiently(&target.route(&["review", "send"]), &review).await?;
    drop(client);
    show(context, receipt, detach).await
}

async fn pull_request(context: &Context, target: &Target, wanted: NewPullRequest) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let route = target.route(&["pull-request"]);
    let offer: PullRequestOffer = client.get_patiently(&route).await?;
    if offer.uncommitted {
        context.out.warn("changes that are in no commit are not part of the pull request");
    }
    let title = if wanted.title.is_empty() {
        let view: SessionView = client.get(&target.route(&[])).await?;
        view.title.or(offer.branch).unwrap_or_default()
    } else {
        wanted.title
    };
    let wanted = NewPullRequest { title, remote: offer.remote, ..wanted };
    let opened: PullRequest = client.post_patiently(&route, &wanted).await?;
    if context.out.is_json() {
        return context.out.json(&opened);
    }
    let what =
        if opened.existing { "a pull request is open already for" } else { "opened a pull request for" };
    context.out.note(&format!("{what} {}", one_line(&opened.branch)));
    context.out.data(&one_line(&opened.url))
}

/// The comment that a text names: the whole id, or the beginning or the end of it.
async fn named(client: &mut Client<'_>, target: &Target, text: &str) -> Result<CommentId, Failure> {
    if let Ok(comment) = text.trim().parse() {
        return Ok(comment);
    }
    let review: ReviewView = client.get_patiently(&target.route(&["review"])).await?;
    let ids: Vec<CommentId> = review.comments.iter().map(|view| view.comment.draft.comment).collect();
    let part = IdPart::parse(text).filter(|part| part.is_of(CommentId::PREFIX));
    let is_meant = |id: &&CommentId| part.is_some_and(|part| part.matches(id.as_u128()));
    let found: Vec<&CommentId> = ids.iter().filter(is_meant).collect();
    match found.as_slice() {
        [only] => Ok(**only),
        [] => Err(Failure::local(
            "comment_not_found",
            format!("no comment there is called `{}`", one_line(text)),
            format!("list them with `lanyard review {}`", target.id),
        )),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            let title = format!("`{}` means {}", one_line(text), ids.join(" and "));
            Err(Failure::local("name_ambiguous", title, "type more of the id; nothing was done"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_path_and_lines() {
        let of = |path: &str, first, last| Some(FileLines { path: path.to_owned(), first, last });
        for (text, expected) in [
            ("src/a.rs:42", of("src/a.rs", 42, 42)),
            ("src/a.rs:42-45", of("src/a.rs", 42, 45)),
            ("a:b c.rs:1-1", of("a:b c.rs", 1, 1)),
            ("src/a.rs", None),
            ("src/a.rs:", None),
            ("src/a.rs:0", None),
            ("src/a.rs:5-4", None),
            ("src/a.rs:1-", None),
            (":1", None),
            ("a:99999999999", None),
        ] {
            assert_eq!(place(text).ok(), expected, "{text}");
        }
    }
}
