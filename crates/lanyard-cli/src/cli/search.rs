//! `lanyard search`: messages, tool calls and results by their words.

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use lanyard_api::types::{SearchHit, SearchIndex, SearchPage};
use lanyard_client::names::A_SESSION;
use lanyard_client::{Route, inside};
use lanyard_core::search::SearchKind;

use super::audit::When;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::ids::Shortener;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::stamp;

/// The most one page may hold.
const PAGE_HITS_MAX: usize = 100;
/// Shown when nothing else is said.
const HITS_DEFAULT: usize = 20;

const EXAMPLES: &str = "\
Finds texts that have all the words: messages of people and agents, calls of tools and their results.
Newer texts come first, and among the newest the best. Case and accents do not matter; the parts of
parse_config and fooBar are words, too.

In the query:
  login fails           both words
  '\"login fails\"'       the words one after the other
  conf*                 words that begin with it
  'login -test'         without a word
  agent:claude          also in:FOLDER, session:ID, kind:message, kind:tool, kind:result, since:2h

Quote what the shell would take for itself, and what begins with `-`.

Examples:
  lanyard search login fails
  lanyard search '\"connection refused\"' --kind result --since 7d
  lanyard search parse_config --agent claude --in .
  lanyard search migration --session fix-login
  lanyard search timeout --json | jq -r '.items[] | \"\\(.session) \\(.seq)\"'";

const COLUMNS: [Column; 5] = [
    Column::whole("AT"),
    Column::whole("SESSION"),
    Column::whole("KIND"),
    Column::elastic("TITLE", 12),
    Column::elastic("TEXT", 24),
];

/// Find messages, tool calls and results of all sessions by their words
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SearchArgs {
    /// The query
    #[arg(value_name = "WORDS", required = true, value_parser = NonEmptyStringValueParser::new())]
    words: Vec<String>,
    /// Only in this session: its id or one of its aliases
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only in sessions of this agent
    #[arg(long, conflicts_with = "session")]
    agent: Option<String>,
    /// Only in sessions in this folder and below (`.` for this one)
    #[arg(long = "in", value_name = "FOLDER", conflicts_with = "session", value_parser = super::target::workspace)]
    folder: Option<String>,
    /// Only these texts
    #[arg(long, value_parser = PossibleValuesParser::new(SearchKind::ALL.map(SearchKind::as_str)))]
    kind: Option<String>,
    /// Not older than this: a span such as 2h, or a time
    #[arg(long, value_name = "WHEN")]
    since: Option<When>,
    /// Show this many at most; 0 for all
    #[arg(long, short = 'n', value_name = "N", default_value_t = HITS_DEFAULT)]
    limit: usize,
    /// Go on where a limited search ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl SearchArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let since = match self.since {
            Some(when) => Some(when.at(daemon_now(&mut client).await?)),
            None => None,
        };
        let route = match inside() {
            // An agent finds what is in its own log.
            Some(session) if self.session.is_none() => Route::to(&["sessions", &session, "search"]),
            Some(_) | None => match client.id_if(A_SESSION, self.session).await? {
                Some(session) => Route::to(&["sessions", &session, "search"]),
                None => {
                    Route::to(&["search"]).with("agent", self.agent.as_ref()).with("in", self.folder.as_ref())
                }
            },
        };
        let route =
            route.with("q", Some(self.words.join(" "))).with("kind", self.kind.as_ref()).with("since", since);
        let max = if self.limit == 0 { usize::MAX } else { self.limit };
        let (mut hits, mut cursor): (Vec<SearchHit>, _) = (Vec::new(), self.cursor);
        let index = loop {
            let limit = PAGE_HITS_MAX.min(max - hits.len());
            let at = route.clone().with("cursor", cursor.as_ref()).with("limit", Some(limit));
            let page: SearchPage = client.get(&at).await?;
            hits.extend(page.items);
            cursor = page.next;
            if cursor.is_none() || hits.len() >= max {
                break page.index;
            }
        };
        if let Some(missing) = missing(&index) {
            context.out.warn(&missing);
        }
        if context.out.is_json() {
            return context.out.list(&hits, cursor.as_deref());
        }
        let Some(first) = hits.first() else {
            context.out.note("nothing has all these words");
            return Ok(());
        };
        let cells: Vec<Vec<String>> = hits.iter().map(cells).collect();
        context.out.data(&table(&COLUMNS, &cells, context.out.columns))?;
        let ids: Vec<String> = hits.iter().map(|hit| hit.session.to_string()).collect();
        let session = Shortener::of(&ids).named(&first.session);
        context
            .out
            .note(&format!("read on from the first with `lanyard log {session} --since {}`", first.at));
        Ok(())
    }
}

/// Said while not all of the log is in the index.
fn missing(index: &SearchIndex) -> Option<String> {
    let SearchIndex { complete, indexed, events } = *index;
    (!complete).then(|| format!("{indexed} of {events} events are indexed so far; later ones are missing"))
}

fn cells(hit: &SearchHit) -> Vec<String> {
    vec![
        stamp(hit.at),
        hit.session.to_string(),
        hit.kind.to_string(),
        hit.title.as_deref().map(one_line).unwrap_or_default(),
        one_line(&hit.snippet.text),
    ]
}
