//! Look-ups of names: what the daemon knows under a name, and what to say when that is nothing or more than one thing.

use lanyard_api::types::{NameMatches, NamedItem};
use lanyard_client::names::{A_SESSION, ANY, NameMeaning, WantedName, is_id};
use lanyard_client::{ApiRequest, SIGN_OF_LIFE_TIMEOUT};
use lanyard_core::naming::{MatchedBy, NameKind};
use lanyard_core::{SessionId, Timestamp};

use super::Client;
use crate::failure::Failure;
use crate::render::ids::short_id;
use crate::render::table::{Column, table};
use crate::render::text::{count, one_line};
use crate::render::time::ago;

const COLUMNS: [Column; 6] = [
    Column::whole("ID"),
    Column::whole("KIND"),
    Column::elastic("NAME", 10),
    Column::elastic("TITLE", 16),
    Column::whole("STATE"),
    Column::whole("AGE"),
];

impl Client<'_> {
    /// The whole id of what people call so. A name that nothing has is returned as it is: the request that uses it is
    /// refused with the nearest names. An ambiguous one is refused here.
    pub(crate) async fn id_of(&mut self, kinds: &'static [NameKind], name: &str) -> Result<String, Failure> {
        match self.meaning(&WantedName::of(kinds, name)).await? {
            NameMeaning::Id(id) => Ok(id),
            NameMeaning::Nothing(..) => Ok(name.to_owned()),
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

    /// The session of a filter, refused here when nothing has the name: the daemon would only say that the filter's
    /// form is wrong.
    pub(crate) async fn session_if(&mut self, name: Option<String>) -> Result<Option<SessionId>, Failure> {
        let Some(name) = name else { return Ok(None) };
        let wanted = WantedName::of(A_SESSION, &name);
        let meaning = self.meaning(&wanted).await?;
        let id = if let NameMeaning::Id(id) = &meaning { id } else { &name };
        if let Ok(id) = id.parse() {
            return Ok(Some(id));
        }
        let title = format!("there is no session `{}`", one_line(&name));
        let failure = Failure::local("session_not_found", title, "list the sessions with `lanyard ls --all`");
        Err(with_nearest(failure, &meaning, self.context.out.columns))
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

    pub(super) async fn meaning(&mut self, wanted: &WantedName) -> Result<NameMeaning, Failure> {
        // An agent's token does not look at other sessions; its routes take ids and aliases.
        if is_id(&wanted.name) || self.is_session() {
            return Ok(NameMeaning::Nothing(Vec::new(), None));
        }
        if let Some(known) = self.context.names.known(wanted) {
            return Ok(known);
        }
        let meaning = match self.matches(wanted).await {
            Some(found) => read(wanted, found, self.context.out.columns)?,
            None => return Ok(NameMeaning::Nothing(Vec::new(), None)),
        };
        self.context.names.note(wanted.clone(), meaning.clone());
        Ok(meaning)
    }

    /// `None` when the daemon does not answer this: the request itself then tells why.
    async fn matches(&mut self, wanted: &WantedName) -> Option<NameMatches> {
        let route = wanted.route();
        let request = ApiRequest::question(&route, Some(SIGN_OF_LIFE_TIMEOUT));
        self.connection.attempt(&request).await.ok()?.accepted().ok()?.json().ok()
    }
}

fn read(wanted: &WantedName, found: NameMatches, columns: Option<usize>) -> Result<NameMeaning, Failure> {
    match (found.matched, found.items.as_slice()) {
        // These routes tell an alias from an id, and know which of several is meant.
        (Some(MatchedBy::Alias), _) if wanted.kinds == ANY => Ok(NameMeaning::Nothing(Vec::new(), None)),
        (Some(_), [only]) => Ok(NameMeaning::Id(only.id.clone())),
        (None, _) => Ok(NameMeaning::Nothing(found.items, Some(found.now))),
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
pub(super) fn with_nearest(failure: Failure, meaning: &NameMeaning, columns: Option<usize>) -> Failure {
    let (items, now) = match meaning {
        NameMeaning::Nothing(items, Some(now)) if !items.is_empty() => (items, *now),
        NameMeaning::Id(_) | NameMeaning::Nothing(..) => return failure,
    };
    match failure {
        Failure::Told { mut problem, exit } if matches!(problem.status, 0 | 400 | 404) => {
            problem.title = format!("{}; the nearest:\n{}", problem.title, listed(items, now, columns));
            Failure::Told { problem, exit }
        }
        Failure::Told { .. } | Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe => failure,
    }
}
