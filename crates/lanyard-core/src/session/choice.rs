//! Models, modes and effort levels: what an agent offers, and what is chosen of it for a session or for one turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::ActorKind;
use crate::naming::how_far;
use crate::session::decide::optional_name;
use crate::session::record::is_default;
use crate::session::refusal::Refusal;
use crate::text::{content_hash, one_line};

/// Entries of one menu that are kept, and commands.
const ITEMS_MAX: usize = 512;
/// Characters of an id that are kept; a longer one is left out, since half an id chooses nothing.
const ID_CHARS_MAX: usize = 200;
/// Characters of a name and of a description.
const NAME_CHARS: usize = 100;
const ABOUT_CHARS: usize = 200;
/// Bytes of a whole offer. Descriptions go first, then the last entries of the longest list.
const OFFER_BYTES_MAX: usize = 64 * 1024;
/// Names that a refusal shows.
const NEAREST_MAX: usize = 5;

/// Modes of known agents in which they ask for no approvals, as letters and digits alone.
const UNGUARDED: [&str; 7] = [
    "bypasspermissions",
    "yolo",
    "fullaccess",
    "agentfullaccess",
    "dangerfullaccess",
    "neverdangerfullaccess",
    "dangerfullaccessnever",
];

/// A thing that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    Model,
    Mode,
    Effort,
}

impl ChoiceKind {
    pub const ALL: [Self; 3] = [Self::Model, Self::Mode, Self::Effort];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Mode => "mode",
            Self::Effort => "effort",
        }
    }
}

/// A choice of model, mode and effort, by the agent's own ids. What is absent is the session's choice in a turn, and the
/// agent's default in a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How much the model thinks: the agent's word for it, such as `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

impl AgentChoice {
    #[must_use]
    pub fn get(&self, kind: ChoiceKind) -> Option<&str> {
        match kind {
            ChoiceKind::Model => self.model.as_deref(),
            ChoiceKind::Mode => self.mode.as_deref(),
            ChoiceKind::Effort => self.effort.as_deref(),
        }
    }

    pub fn put(&mut self, kind: ChoiceKind, value: Option<String>) {
        match kind {
            ChoiceKind::Model => self.model = value,
            ChoiceKind::Mode => self.mode = value,
            ChoiceKind::Effort => self.effort = value,
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This choice, and the other one where it leaves something open.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        let mut whole = self.clone();
        for kind in ChoiceKind::ALL {
            if whole.get(kind).is_none() {
                whole.put(kind, below.get(kind).map(str::to_owned));
            }
        }
        whole
    }

    /// The same as it may stand in a log: without what no agent could mean.
    #[must_use]
    pub fn bounded(&self) -> Self {
        let mut kept = Self::default();
        for kind in ChoiceKind::ALL {
            kept.put(kind, self.get(kind).and_then(id));
        }
        kept
    }

    /// Refuses words that are no ids, and a mode without approvals that no operator chose.
    pub fn check(&self, by: ActorKind) -> Result<(), Refusal> {
        for kind in ChoiceKind::ALL {
            optional_name(kind.as_str(), self.get(kind))?;
        }
        match &self.mode {
            Some(mode) if by == ActorKind::Agent && bypasses_approvals(mode) => {
                Err(Refusal::ModeNeedsOperator { mode: mode.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether an agent in this mode asks for no approvals.
#[must_use]
pub fn bypasses_approvals(mode: &str) -> bool {
    let plain: String =
        mode.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    UNGUARDED.contains(&plain.as_str())
}

/// What an agent offers to choose, and its own commands, as it last reported them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentOffer {
    #[serde(skip_serializing_if = "is_default")]
    pub models: OfferMenu,
    #[serde(skip_serializing_if = "is_default")]
    pub modes: OfferMenu,
    #[serde(skip_serializing_if = "is_default")]
    pub efforts: OfferMenu,
    /// Commands that a prompt can begin with, as `/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<OfferedCommand>,
}

/// What can be chosen of one kind. Empty where the agent offers no choice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OfferMenu {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<OfferItem>,
    /// The id that is in force where none is chosen, if the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Ids beside the listed ones are passed on too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// The agent's own id of the option, where its protocol has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
}

/// One thing that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OfferItem {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// A mode in which the agent asks for no approvals.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unguarded: bool,
}

/// A command of the agent's own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OfferedCommand {
    /// Without the slash.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The last offer in a session's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferMark {
    /// Its position.
    pub seq: u64,
    /// Hash of its content: the same offer is written once.
    pub hash: String,
}

impl OfferItem {
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }
}

impl OfferMenu {
    /// Whether anything can be chosen.
    #[must_use]
    pub fn is_offered(&self) -> bool {
        self.open || !self.items.is_empty()
    }

    #[must_use]
    pub fn has(&self, wanted: &str) -> bool {
        self.open
            || self.default.as_deref() == Some(wanted)
            || self.items.iter().any(|item| item.id == wanted)
    }

    fn bound(&mut self, is_mode: bool) {
        let mut seen = std::collections::BTreeSet::new();
        self.items
            .retain(|item| id(&item.id).is_some_and(|id| id == item.id) && seen.insert(item.id.clone()));
        self.items.truncate(ITEMS_MAX);
        for item in &mut self.items {
            item.name = short(item.name.as_deref(), NAME_CHARS);
            item.about = short(item.about.as_deref(), ABOUT_CHARS);
            item.unguarded = is_mode && bypasses_approvals(&item.id);
        }
        self.default = self.default.as_deref().and_then(id);
        self.option = self.option.as_deref().and_then(id);
    }
}

impl AgentOffer {
    #[must_use]
    pub fn menu(&self, kind: ChoiceKind) -> &OfferMenu {
        match kind {
            ChoiceKind::Model => &self.models,
            ChoiceKind::Mode => &self.modes,
            ChoiceKind::Effort => &self.efforts,
        }
    }

    pub fn menu_mut(&mut self, kind: ChoiceKind) -> &mut OfferMenu {
        match kind {
            ChoiceKind::Model => &mut self.models,
            ChoiceKind::Mode => &mut self.modes,
            ChoiceKind::Effort => &mut self.efforts,
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is in force where nothing is chosen.
    #[must_use]
    pub fn defaults(&self) -> AgentChoice {
        let mut defaults = AgentChoice::default();
        for kind in ChoiceKind::ALL {
            defaults.put(kind, self.menu(kind).default.clone());
        }
        defaults
    }

    /// Whether a prompt is a command of the agent's own.
    #[must_use]
    pub fn is_command(&self, prompt: &str) -> bool {
        let name = prompt.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
        name.is_some_and(|name| self.commands.iter().any(|command| command.name == name))
    }

    /// The offer within its bounds, as it is written.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        for kind in ChoiceKind::ALL {
            self.menu_mut(kind).bound(kind == ChoiceKind::Mode);
        }
        let mut seen = std::collections::BTreeSet::new();
        self.commands.retain(|command| {
            let fits = id(&command.name).is_some_and(|name| name == command.name);
            fits && !command.name.contains(char::is_whitespace) && seen.insert(command.name.clone())
        });
        self.commands.truncate(ITEMS_MAX);
        for command in &mut self.commands {
            command.about = short(command.about.as_deref(), ABOUT_CHARS);
            command.hint = short(command.hint.as_deref(), NAME_CHARS);
        }
        if self.bytes() > OFFER_BYTES_MAX {
            self.without_descriptions();
        }
        while self.bytes() > OFFER_BYTES_MAX {
            self.halve_longest();
        }
        self
    }

    fn without_descriptions(&mut self) {
        for kind in ChoiceKind::ALL {
            self.menu_mut(kind).items.iter_mut().for_each(|item| item.about = None);
        }
        self.commands.iter_mut().for_each(|command| (command.about, command.hint) = (None, None));
    }

    fn halve_longest(&mut self) {
        let longest = ChoiceKind::ALL.into_iter().max_by_key(|kind| self.menu(*kind).items.len());
        let items = longest.map_or(0, |kind| self.menu(kind).items.len());
        match longest {
            Some(kind) if items >= self.commands.len() => self.menu_mut(kind).items.truncate(items / 2),
            Some(_) | None => self.commands.truncate(self.commands.len() / 2),
        }
    }

    fn bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |text| text.len())
    }

    #[must_use]
    pub fn hash(&self) -> String {
        content_hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Refuses what the agent does not offer, with the nearest names that it does.
    pub fn admit(&self, choice: &AgentChoice) -> Result<(), Refusal> {
        for kind in ChoiceKind::ALL {
            let (menu, Some(wanted)) = (self.menu(kind), choice.get(kind)) else { continue };
            if menu.has(wanted) {
                continue;
            }
            let what = kind.as_str();
            if !menu.is_offered() {
                return Err(Refusal::ChoiceNotOffered { what });
            }
            let nearest = nearest(wanted, menu);
            return Err(Refusal::ChoiceUnknown { what, wanted: wanted.to_owned(), nearest });
        }
        Ok(())
    }
}

/// Ids in a menu, the nearest first; the first ones where none is near.
fn nearest(wanted: &str, menu: &OfferMenu) -> Vec<String> {
    let mut near: Vec<(usize, &str)> =
        menu.items.iter().filter_map(|item| Some((how_far(wanted, &item.id)?, item.id.as_str()))).collect();
    near.sort_by_key(|(far, _)| *far);
    let found: Vec<&str> = if near.is_empty() {
        menu.items.iter().map(|item| item.id.as_str()).collect()
    } else {
        near.into_iter().map(|(_, id)| id).collect()
    };
    found.into_iter().take(NEAREST_MAX).map(str::to_owned).collect()
}

fn id(text: &str) -> Option<String> {
    let fits = !text.trim().is_empty() && text.chars().count() <= ID_CHARS_MAX;
    (fits && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

fn short(text: Option<&str>, max: usize) -> Option<String> {
    text.map(|text| one_line(text, max)).filter(|text| !text.is_empty())
}
