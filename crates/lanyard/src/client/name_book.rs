//! Names instead of ids. A route may name a session, a task or anything else with an id by whatever people call it; the
//! client asks the daemon for the id once, and uses that id from then on. A whole id needs no question.

use std::collections::BTreeMap;
use std::sync::Arc;

use lanyard_api::types::{NameMatches, NamedItem};
use lanyard_core::Timestamp;
use lanyard_core::naming::{MatchedBy, NameKind, is_whole};
use parking_lot::Mutex;

use super::{Ask, Client, Lost, Route, SIGN_OF_LIFE_TIMEOUT};
use crate::failure::Failure;
use crate::render::ids::short_id;
use crate::render::table::{Column, table};
use crate::render::text::{count, one_line};
use crate::render::time::ago;

/// What stands before a task's id where chat hosts address it.
const URI: &str = "orchestrator:/";

const COLUMNS: [Column; 6] = [
    Column::whole("ID"),
    Column::whole("KIND"),
    Column::elastic("NAME", 10),
    Column::elastic("TITLE", 16),
    Column::whole("STATE"),
    Column::whole("AGE"),
];

/// The kinds that each collection of the API can be asked for by name, and the words below it that are no names.
const COLLECTIONS: [(&str, &[NameKind], &[&str]); 8] = [
    ("sessions", A_SESSION, &["bulk"]),
    ("tasks", A_TASK, &[]),
    ("plans", A_PLAN, &["import"]),
    ("flows", &[NameKind::Flow], &[]),
    ("mail", &[NameKind::Mail], &[]),
    ("notifications", &[NameKind::Notification], &["bulk", "purge"]),
    ("ids", ANY, &[]),
    ("resume", ANY, &[]),
];

/// A session, by its own names or by those of the task that is done in it.
pub(crate) const A_SESSION: &[NameKind] = &[NameKind::Session, NameKind::Task, NameKind::Worker];
/// A task, by its own names or by those of who works at it.
pub(crate) const A_TASK: &[NameKind] = &[NameKind::Task, NameKind::Session, NameKind::Worker, NameKind::Run];
pub(crate) const A_PLAN: &[NameKind] = &[NameKind::Plan];
/// Work that can be halted.
pub(crate) const A_WORK: &[NameKind] = &[NameKind::Plan, NameKind::Task, NameKind::Worker];
/// Whoever asks something, or the question itself.
pub(crate) const AN_ASKER: &[NameKind] = &[NameKind::Gate, NameKind::Flow, NameKind::Session, NameKind::Task];

/// Everything `lanyard id` and `lanyard resume` take, the likeliest first.
const ANY: &[NameKind] =
    &[NameKind::Session, NameKind::Task, NameKind::Plan, NameKind::Worker, NameKind::Run, NameKind::Mail];

/// The kinds a part of an address can name; `None` where it needs no look-up.
pub(super) fn kinds_of(collection: &str, name: &str) -> Option<&'static [NameKind]> {
    let known = |(own, _, verbs): &&(&str, _, &[&str])| *own == collection && !verbs.contains(&name);
    let (_, kinds, _) = COLLECTIONS.iter().find(known)?;
    (!is_whole(name) && !name.starts_with(URI)).then_some(*kinds)
}

/// A name, and where to look for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WantedName {
    pub(crate) kinds: &'static [NameKind],
    pub(crate) name: String,
    pub(crate) workspace: Option<String>,
    pub(crate) plan: Option<String>,
}

impl WantedName {
    pub(crate) fn of(kinds: &'static [NameKind], name: &str) -> Self {
        Self { kinds, name: name.to_owned(), workspace: None, plan: None }
    }

    fn route(&self) -> Route {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let here = (self.name == ".").then(|| std::fs::canonicalize(".").ok()).flatten();
        Route::to(&["ids"])
            .with("name", Some(&self.name))
            .with("kind", Some(kinds.join(",")))
            .with("workspace", self.workspace.as_ref())
            .with("plan", self.plan.as_ref())
            .with("here", here.as_deref().and_then(std::path::Path::to_str))
    }
}

/// The names this process has looked up. A name means the same thing in all requests of a command, also when a newer
/// session takes the place of `last` meanwhile.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameBook(Arc<Mutex<BTreeMap<WantedName, Meaning>>>);

/// What the daemon knows under a name.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    Id(String),
    /// Nothing; these names are the nearest.
    Nothing(Vec<NamedItem>, Option<Timestamp>),
}

impl Client<'_> {
    /// The whole id of what people call so. A name that nothing has is returned as it is: the request that uses it is
    /// refused with the nearest names. An ambiguous one is refused here.
    pub(crate) async fn id_of(&mut self, kinds: &'static [NameKind], name: &str) -> Result<String, Failure> {
        match self.meaning(&WantedName::of(kinds, name)).await? {
            Meaning::Id(id) => Ok(id),
            Meaning::Nothing(..) => Ok(name.to_owned()),
        }
    }

    /// As [`Self::id_of`], of a name that may be absent.
    pub(crate) async fn id_if(
        &mut self,
        kinds: &'static [NameKind],
        name: Option<String>,
    ) -> Result<Option<String>, Failure> {
        match name {
            Some(name) => Ok(Some(self.id_of(kinds, &name).await?)),
            None => Ok(None),
        }
    }

    /// As [`Self::id_of`], of each of several names.
    pub(crate) async fn ids_of(
        &mut self,
        kinds: &'static [NameKind],
        names: Vec<String>,
    ) -> Result<Vec<String>, Failure> {
        let mut ids = Vec::new();
        for name in names {
            ids.push(self.id_of(kinds, &name).await?);
        }
        Ok(ids)
    }

    pub(super) async fn meaning(&mut self, wanted: &WantedName) -> Result<Meaning, Failure> {
        // An agent's token does not look at other sessions; its routes take ids and aliases.
        if is_whole(&wanted.name) || wanted.name.starts_with(URI) || self.is_session() {
            return Ok(Meaning::Nothing(Vec::new(), None));
        }
        let book = self.context.names.clone();
        let known = book.0.lock().get(wanted).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let meaning = match self.matches(wanted).await {
            Some(found) => read(wanted, found, self.context.out.columns)?,
            None => return Ok(Meaning::Nothing(Vec::new(), None)),
        };
        book.0.lock().insert(wanted.clone(), meaning.clone());
        Ok(meaning)
    }

    /// `None` when the daemon does not answer this: the request itself then tells why.
    async fn matches(&mut self, wanted: &WantedName) -> Option<NameMatches> {
        let route = wanted.route();
        let answer = self.wire.attempt(&Ask::question(&route, Some(SIGN_OF_LIFE_TIMEOUT))).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(Lost::Broken | Lost::Silent(_)) => return None,
        };
        answer.accepted().ok()?.read().ok()
    }
}

fn read(wanted: &WantedName, found: NameMatches, columns: Option<usize>) -> Result<Meaning, Failure> {
    match (found.matched, found.items.as_slice()) {
        // These routes tell an alias from an id, and know which of several is meant.
        (Some(MatchedBy::Alias), _) if wanted.kinds == ANY => Ok(Meaning::Nothing(Vec::new(), None)),
        (Some(_), [only]) => Ok(Meaning::Id(only.id.clone())),
        (None, _) => Ok(Meaning::Nothing(found.items, Some(found.now))),
        (Some(_), several) => {
            let kind = several.first().map_or(NameKind::Session, |item| item.kind);
            let same = several.iter().all(|item| item.kind == kind);
            let more = if found.more { "more than " } else { "" };
            let things =
                if same { count(several.len(), kind.as_str()) } else { count(several.len(), "thing") };
            let title = format!(
                "`{}` means {more}{things}\n{}",
                one_line(&wanted.name),
                listed(several, found.now, columns)
            );
            let first = several.first().map(|item| short_id(&item.id)).unwrap_or_default();
            let narrow =
                if kind == NameKind::Session { ", or narrow it with --workspace or --plan" } else { "" };
            let advice =
                format!("type the id of the one you mean, such as `{first}`{narrow}; nothing was done");
            Err(Failure::local("name_ambiguous", title, advice))
        }
    }
}

/// Candidates as a table: short id, name, title, state and age.
pub(crate) fn listed(items: &[NamedItem], now: Timestamp, columns: Option<usize>) -> String {
    let kind = items.first().map(|item| item.kind);
    let mixed = items.iter().any(|item| Some(item.kind) != kind);
    let row = |item: &NamedItem| {
        vec![
            item.id.clone(),
            if mixed { item.kind.as_str().to_owned() } else { String::new() },
            item.name.as_deref().map(one_line).unwrap_or_default(),
            item.title.as_deref().map(one_line).unwrap_or_default(),
            item.state.clone(),
            ago(now, item.created_at),
        ]
    };
    // Lines of an error are indented by two.
    let max = columns.map(|columns| columns.saturating_sub(2));
    table(&COLUMNS, &items.iter().map(row).collect::<Vec<_>>(), max)
}

/// Adds the nearest names to the refusal of a name that nothing has.
pub(super) fn with_nearest(failure: Failure, meaning: &Meaning, columns: Option<usize>) -> Failure {
    let (items, now) = match meaning {
        Meaning::Nothing(items, Some(now)) if !items.is_empty() => (items, *now),
        Meaning::Id(_) | Meaning::Nothing(..) => return failure,
    };
    match failure {
        Failure::Told { mut problem, exit } if matches!(problem.status, 400 | 404) => {
            problem.title = format!("{}; the nearest:\n{}", problem.title, listed(items, now, columns));
            Failure::Told { problem, exit }
        }
        Failure::Told { .. } | Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe => failure,
    }
}
