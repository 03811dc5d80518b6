//! What was measured, whether it is good enough, and how both are shown.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Which side of the bar is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    AtLeast,
    AtMost,
}

/// How a row is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Judge {
    /// By Lanyard's figure divided by the reference's.
    Ratio(Better, f64, f64),
    /// By Lanyard's figure alone, which must stay below this.
    Below(f64),
    /// Not at all: the row is context.
    Shown,
}

/// One line of the table: the same thing measured several times, beside its reference each time.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) goal: &'static str,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) reference: &'static str,
    pub(crate) judge: Judge,
    /// One figure per repetition.
    pub(crate) figures: Vec<f64>,
    /// One per figure, or none at all.
    pub(crate) references: Vec<f64>,
    /// What has to be known to read the row.
    pub(crate) note: String,
}

impl Row {
    pub(crate) fn new(goal: &'static str, what: impl Into<String>, unit: &'static str, judge: Judge) -> Self {
        Self {
            goal,
            what: what.into(),
            unit,
            reference: "",
            judge,
            figures: Vec::new(),
            references: Vec::new(),
            note: String::new(),
        }
    }

    pub(crate) fn beside(mut self, reference: &'static str) -> Self {
        self.reference = reference;
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(crate) fn add(&mut self, figure: f64, reference: f64) {
        self.figures.push(figure);
        self.references.push(reference);
    }

    /// Ratios of the repetitions, smallest first. Figures of one repetition were taken next to each other, so what the
    /// machine did meanwhile concerns both.
    fn ratios(&self) -> Vec<f64> {
        let mut ratios: Vec<f64> = self.figures.iter().zip(&self.references).map(|(f, r)| f / r).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }

    pub(crate) fn verdict(&self) -> &'static str {
        let (better, bar, stretch, value) = match self.judge {
            Judge::Shown => return "-",
            Judge::Below(bar) => (Better::AtMost, bar, None, median(&self.figures)),
            Judge::Ratio(better, bar, stretch) => (better, bar, Some(stretch), median(&self.ratios())),
        };
        let reaches = |limit: f64| match better {
            Better::AtLeast => value >= limit,
            Better::AtMost => value <= limit,
        };
        match stretch {
            Some(stretch) if reaches(stretch) => "stretch",
            Some(_) | None if reaches(bar) => "met",
            Some(_) | None => "MISSED",
        }
    }

    fn cells(&self) -> [String; 8] {
        let figure = format!("{} {}", figure(median(&self.figures)), self.unit);
        let reference = match (self.references.is_empty(), self.reference) {
            (true, reference) => reference.to_owned(),
            (false, name) => format!("{} ({name})", self::figure(median(&self.references))),
        };
        let ratios = self.ratios();
        let ratio = match (ratios.first(), ratios.last()) {
            (Some(least), Some(most)) => format!("{:.2}x [{least:.2}-{most:.2}]", median(&ratios)),
            _ => String::new(),
        };
        let (bar, stretch) = match self.judge {
            Judge::Shown => (String::new(), String::new()),
            Judge::Below(bar) => (format!("< {} {}", self::figure(bar), self.unit), String::new()),
            Judge::Ratio(Better::AtLeast, bar, stretch) => (format!(">= {bar}x"), format!(">= {stretch}x")),
            Judge::Ratio(Better::AtMost, bar, stretch) => (format!("<= {bar}x"), format!("<= {stretch}x")),
        };
        let goal = self.goal.to_owned();
        [goal, self.what.clone(), figure, reference, ratio, bar, stretch, self.verdict().to_owned()]
    }

    fn json(&self) -> Value {
        let ratios = self.ratios();
        let ratio = (!ratios.is_empty()).then(|| median(&ratios));
        let (bar, stretch, of) = match self.judge {
            Judge::Shown => (None, None, None),
            Judge::Below(bar) => (Some(bar), None, Some("figure")),
            Judge::Ratio(_, bar, stretch) => (Some(bar), Some(stretch), Some("ratio")),
        };
        json!({
            "goal": self.goal,
            "what": self.what,
            "unit": self.unit,
            "median": median(&self.figures),
            "figures": self.figures,
            "reference": self.reference,
            "reference_median": (!self.references.is_empty()).then(|| median(&self.references)),
            "references": self.references,
            "ratio": ratio,
            "judged_by": of,
            "bar": bar,
            "stretch": stretch,
            "verdict": self.verdict(),
            "note": self.note,
        })
    }
}

/// The table, its notes, and what is missed.
pub(crate) fn table(rows: &[Row]) -> String {
    let heads = ["goal", "what", "Lanyard", "reference", "ratio", "bar", "stretch", "verdict"];
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    let mut text = String::new();
    for cells in &lines {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let notes: Vec<&Row> = rows.iter().filter(|row| !row.note.is_empty()).collect();
    if !notes.is_empty() {
        text.push_str("\nNotes\n");
    }
    for row in notes {
        let _ = writeln!(text, "  {} {}: {}", row.goal, row.what, row.note);
    }
    let mut missed: Vec<&str> =
        rows.iter().filter(|row| row.verdict() == "MISSED").map(|row| row.goal).collect();
    missed.dedup();
    let _ = match missed.as_slice() {
        [] => writeln!(text, "\nNo goal that was measured is missed."),
        missed => writeln!(text, "\nMISSED: {}", missed.join(", ")),
    };
    text
}

pub(crate) fn json(rows: &[Row], facts: &[(&'static str, String)]) -> Value {
    let facts: serde_json::Map<_, _> =
        facts.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect();
    json!({ "machine": facts, "rows": rows.iter().map(Row::json).collect::<Vec<_>>() })
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this share of the values lies.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Three digits that matter.
fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.2}M", value / 1e6),
        v if v >= 1e4 => format!("{:.1}k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
