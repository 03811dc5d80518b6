//! All sessions as a screen knows them: rows as they come, put in order, filtered, and one of them chosen. Thousands
//! may be known; the order is made once per drawing, however many of them changed.

use std::collections::{BTreeMap, BTreeSet};

use lanyard_core::{SessionId, Timestamp};
use serde_json::Value;

use super::face::Face;

/// Sessions that are kept. The daemon sends the newest of them; more would be more than anybody looks at.
const ROWS_MAX: usize = 20_000;
/// How deep a family is drawn; a loop of parents could not be drawn at all.
const DEPTH_MAX: usize = 16;

/// Whether children stand below their parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectoryShape {
    Tree,
    List,
}

/// Urgency; the first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// An operator has to act.
    Attention,
    Running,
    Resting,
    Over,
}

#[derive(Debug)]
struct Item {
    row: Face,
    /// What a row does not tell: who writes, and the last tool call.
    detail: Option<Face>,
    /// The position of the log the details were asked at.
    asked_at: Option<u64>,
    /// Which reading of the directory it was last seen in.
    reading: u64,
}

/// A line of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryLine {
    pub(crate) id: SessionId,
    /// The branches of the tree before it.
    pub(crate) branch: String,
}

#[derive(Debug)]
pub(crate) struct Directory {
    shape: DirectoryShape,
    items: BTreeMap<SessionId, Item>,
    places: Vec<DirectoryLine>,
    stale: bool,
    reading: u64,
    /// All rows of this reading have come.
    pub(crate) complete: bool,
    filter: String,
    chosen: Option<SessionId>,
    /// Where the chosen one stood, for when it goes away.
    chosen_at: usize,
    /// The first visible line.
    top: usize,
}

impl Directory {
    pub(crate) fn new(shape: DirectoryShape) -> Self {
        Self {
            shape,
            items: BTreeMap::new(),
            places: Vec::new(),
            stale: true,
            reading: 0,
            complete: false,
            filter: String::new(),
            chosen: None,
            chosen_at: 0,
            top: 0,
        }
    }

    /// Takes a frame of the directory's stream. Says whether it was one.
    pub(crate) fn frame(&mut self, frame: &Value) -> bool {
        match frame["type"].as_str() {
            Some("connected") => self.begin(),
            Some("row") => self.row(if frame["row"].is_object() { &frame["row"] } else { frame }),
            Some("ready") => self.ready(),
            Some("gone") => {
                if let Some(id) = frame["session"].as_str().and_then(|id| id.parse().ok()) {
                    self.gone(id);
                }
            }
            _ => return false,
        }
        true
    }

    /// A new reading begins: what is not in it is gone.
    pub(crate) fn begin(&mut self) {
        self.reading += 1;
        self.complete = false;
    }

    pub(crate) fn row(&mut self, value: &Value) {
        let Some(row) = Face::read(value) else { return };
        let reading = self.reading;
        if self.items.len() >= ROWS_MAX && !self.items.contains_key(&row.id) {
            return;
        }
        self.stale = true;
        if let Some(item) = self.items.get_mut(&row.id) {
            (item.row, item.reading) = (row, reading);
        } else {
            self.items.insert(row.id, Item { row, detail: None, asked_at: None, reading });
        }
    }

    pub(crate) fn ready(&mut self) {
        let reading = self.reading;
        self.items.retain(|_, item| item.reading == reading);
        (self.complete, self.stale) = (true, true);
    }

    pub(crate) fn gone(&mut self, id: SessionId) {
        self.items.remove(&id);
        self.stale = true;
    }

    pub(crate) fn detail(&mut self, id: SessionId, value: &Value) {
        if let (Some(item), Some(face)) = (self.items.get_mut(&id), Face::read(value)) {
            item.detail = Some(face);
            self.stale = true;
        }
    }

    /// Visible sessions whose details are not those of their last change; asked for from here on.
    pub(crate) fn wanting(&mut self, height: usize, most: usize) -> Vec<SessionId> {
        let visible = self.places.iter().skip(self.top).take(height);
        let mut wanted = Vec::new();
        for place in visible {
            if wanted.len() == most {
                break;
            }
            if let Some(item) = self.items.get_mut(&place.id)
                && item.asked_at != Some(item.row.last_seq)
            {
                item.asked_at = Some(item.row.last_seq);
                wanted.push(place.id);
            }
        }
        wanted
    }

    pub(crate) fn face(&self, id: SessionId) -> Option<Face> {
        self.items.get(&id).map(Item::face)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn places(&self) -> &[DirectoryLine] {
        &self.places
    }

    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    pub(crate) fn set_filter(&mut self, filter: &str) {
        if self.filter != filter {
            filter.clone_into(&mut self.filter);
            self.stale = true;
        }
    }

    pub(crate) fn chosen(&self) -> Option<SessionId> {
        self.chosen
    }

    /// Counts of running sessions and of those that need an operator.
    pub(crate) fn tally(&self) -> (usize, usize) {
        let running = self.items.values().filter(|item| item.row.is_working()).count();
        let wanted = self.items.values().filter(|item| need(&item.face()) == Need::Attention).count();
        (running, wanted)
    }

    pub(crate) fn go(&mut self, by: isize) {
        let last = self.places.len().saturating_sub(1);
        self.chosen_at = self.chosen_at.saturating_add_signed(by).min(last);
        self.chosen = self.places.get(self.chosen_at).map(|place| place.id);
    }

    pub(crate) fn choose(&mut self, id: SessionId) {
        self.chosen = Some(id);
        self.stale = true;
    }

    /// Puts the rows in order, if any changed, and keeps the chosen one in sight.
    pub(crate) fn settle(&mut self, height: usize) {
        if std::mem::take(&mut self.stale) {
            self.order();
        }
        let at = self.chosen.and_then(|id| self.places.iter().position(|place| place.id == id));
        let last = self.places.len().saturating_sub(1);
        // The chosen one went away: its neighbour is chosen.
        self.chosen_at = at.unwrap_or(self.chosen_at).min(last);
        self.chosen = self.places.get(self.chosen_at).map(|place| place.id);
        let height = height.max(1);
        self.top = self.top.min(self.chosen_at).max((self.chosen_at + 1).saturating_sub(height));
        self.top = self.top.min(self.places.len().saturating_sub(height));
    }

    pub(crate) fn visible(&self, height: usize) -> impl Iterator<Item = (DirectoryLine, Face)> + '_ {
        self.places
            .iter()
            .skip(self.top)
            .take(height)
            .filter_map(|place| Some((place.clone(), self.face(place.id)?)))
    }

    fn order(&mut self) {
        let faces: BTreeMap<SessionId, Face> =
            self.items.iter().map(|(id, item)| (*id, item.face())).collect();
        let shown = self.shown(&faces);
        self.places = match self.shape {
            DirectoryShape::List => {
                let mut ids: Vec<SessionId> = shown.into_iter().collect();
                ids.sort_by_cached_key(|id| faces.get(id).map(rank));
                ids.into_iter().map(|id| DirectoryLine { id, branch: String::new() }).collect()
            }
            DirectoryShape::Tree => Forest::new(&faces, &shown).places(),
        };
    }

    /// Those that match, and in a tree those they hang from.
    fn shown(&self, faces: &BTreeMap<SessionId, Face>) -> BTreeSet<SessionId> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let mut shown = BTreeSet::new();
        for (id, face) in faces {
            if !matches(face, &words) {
                continue;
            }
            shown.insert(*id);
            let mut above = face.parent;
            while let Some(parent) = above.filter(|_| self.shape == DirectoryShape::Tree) {
                if !faces.contains_key(&parent) || !shown.insert(parent) {
                    break;
                }
                above = faces.get(&parent).and_then(|face| face.parent);
            }
        }
        shown
    }
}

impl Item {
    fn face(&self) -> Face {
        let mut face = self.row.clone();
        let Some(detail) = &self.detail else { return face };
        // A row says what waits, and says it sooner; the rest only the session itself tells.
        face.last_tool.clone_from(&detail.last_tool);
        face.writer.clone_from(&detail.writer);
        face.lacks.clone_from(&detail.lacks);
        face
    }
}

/// Families, each with the most urgent need in it.
struct Forest<'a> {
    faces: &'a BTreeMap<SessionId, Face>,
    below: BTreeMap<SessionId, Vec<SessionId>>,
    roots: Vec<SessionId>,
}

impl<'a> Forest<'a> {
    fn new(faces: &'a BTreeMap<SessionId, Face>, shown: &BTreeSet<SessionId>) -> Self {
        let mut below: BTreeMap<SessionId, Vec<SessionId>> = BTreeMap::new();
        let mut roots = Vec::new();
        for id in shown {
            match faces.get(id).and_then(|face| face.parent).filter(|parent| shown.contains(parent)) {
                Some(parent) => below.entry(parent).or_default().push(*id),
                None => roots.push(*id),
            }
        }
        Self { faces, below, roots }
    }

    fn places(self) -> Vec<DirectoryLine> {
        let mut roots = self.roots.clone();
        roots.sort_by_cached_key(|id| self.family_rank(*id, 0));
        let mut places = Vec::new();
        for root in roots {
            self.grow(root, "", "", 0, &mut places);
        }
        places
    }

    fn grow(&self, id: SessionId, branch: &str, indent: &str, depth: usize, places: &mut Vec<DirectoryLine>) {
        places.push(DirectoryLine { id, branch: branch.to_owned() });
        if depth == DEPTH_MAX {
            return;
        }
        let children = self.below.get(&id).map(Vec::as_slice).unwrap_or_default();
        for (at, child) in children.iter().enumerate() {
            let last = at + 1 == children.len();
            let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.grow(*child, &format!("{indent}{branch}"), &format!("{indent}{below}"), depth + 1, places);
        }
    }

    fn family_rank(&self, id: SessionId, depth: usize) -> Rank {
        let own = self.faces.get(&id).map_or((Need::Over, i64::MAX, id), rank);
        let children = self.below.get(&id).map(Vec::as_slice).unwrap_or_default();
        if depth == DEPTH_MAX {
            return own;
        }
        children
            .iter()
            .map(|child| self.family_rank(*child, depth + 1))
            .fold(own, |best, one| (best.0.min(one.0), best.1.min(one.1), best.2))
    }
}

/// What is sorted by: need, then the newest activity, to the minute so that running ones do not dance.
type Rank = (Need, i64, SessionId);

fn rank(face: &Face) -> Rank {
    let minute = face.active_at.map_or(0, |at| -(at.as_millis() / 60_000));
    (need(face), minute, face.id)
}

pub(crate) fn need(face: &Face) -> Need {
    if face.archived || (face.is_ended() && face.attention.is_empty()) {
        return Need::Over;
    }
    let wanted = matches!(face.operator_state.as_str(), "needs_answer" | "ready_for_review");
    if face.gates > 0 || !face.attention.is_empty() || wanted {
        return Need::Attention;
    }
    if face.is_working() { Need::Running } else { Need::Resting }
}

fn matches(face: &Face, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let text = format!(
        "{} {} {} {}",
        face.id,
        face.title.as_deref().unwrap_or_default(),
        face.agent.as_deref().unwrap_or_default(),
        face.state_words()
    )
    .to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// How long it has been so: the turn when one runs, else the state.
pub(crate) fn since(face: &Face) -> Option<Timestamp> {
    face.turn.as_ref().and_then(|turn| turn.started_at).or(face.turn_at).or(face.since)
}
