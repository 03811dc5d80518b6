//! The kind of a single line: a heading, an item, a fence; and names between backticks.

/// Fences are at least this long.
const FENCE_MIN: usize = 3;
/// A tab reaches to the next multiple of this.
const TAB: usize = 4;

/// The text of a heading of exactly this level.
pub(crate) fn heading(line: &str, level: usize) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let marks = line.len() - rest.len();
    let apart = rest.is_empty() || rest.starts_with([' ', '\t']);
    (marks == level && apart).then(|| rest.trim())
}

/// The text of a list's item, numbered or not.
pub(crate) fn bullet(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line.chars().next()? {
        '-' | '*' | '+' => &line[1..],
        '0'..='9' => {
            line.trim_start_matches(|letter: char| letter.is_ascii_digit()).strip_prefix(['.', ')'])?
        }
        _ => return None,
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

/// Whether a box is ticked, and what follows it.
pub(crate) fn boxed(text: &str) -> Option<(bool, &str)> {
    for (mark, done) in [("[ ]", false), ("[x]", true), ("[X]", true)] {
        if let Some(rest) = text.strip_prefix(mark)
            && (rest.is_empty() || rest.starts_with([' ', '\t']))
        {
            return Some((done, rest.trim()));
        }
    }
    None
}

/// Columns before the first letter.
pub(super) fn indent(line: &str) -> usize {
    let mut columns = 0;
    for letter in line.chars() {
        match letter {
            ' ' => columns += 1,
            '\t' => columns += TAB - columns % TAB,
            _ => break,
        }
    }
    columns
}

/// The line without up to `columns` of what it is indented by.
pub(super) fn dedent(line: &str, columns: usize) -> &str {
    let mut passed = 0;
    for (at, letter) in line.char_indices() {
        let next = match letter {
            ' ' => passed + 1,
            '\t' => passed + TAB - passed % TAB,
            _ => return &line[at..],
        };
        if next > columns {
            return &line[at..];
        }
        passed = next;
    }
    ""
}

/// The marks that begin or end a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// A line that begins a block, and what is written behind the marks.
    pub(super) fn opens(line: &str) -> Option<(Self, &str)> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        // Marks behind the marks: a name between backticks.
        let is_name = mark == '`' && rest.contains('`');
        (length >= FENCE_MIN && !is_name).then(|| (Self { mark, length }, rest.trim()))
    }

    pub(super) fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.chars().all(|letter| letter == self.mark) && line.len() >= self.length
    }

    /// One that nothing in the text closes.
    pub(super) fn around(text: &str) -> Self {
        Self { mark: '`', length: FENCE_MIN.max(longest_run(text) + 1) }
    }

    pub(super) fn marks(self) -> String {
        self.mark.to_string().repeat(self.length)
    }
}

/// Follows code blocks from line to line.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: Option<(usize, Fence)>,
}

impl Blocks {
    /// Whether the line is in a code block, its marks included.
    pub(crate) fn takes(&mut self, number: usize, line: &str) -> bool {
        if let Some((_, fence)) = self.open {
            if fence.is_closed_by(line) {
                self.open = None;
            }
            return true;
        }
        self.open = Fence::opens(line).map(|(fence, _)| (number, fence));
        self.open.is_some()
    }

    /// The line that began a block that is still open.
    pub(crate) fn open_since(&self) -> Option<usize> {
        self.open.map(|(number, _)| number)
    }
}

/// A name between backticks, as many as it needs.
pub(super) fn quote(name: &str) -> String {
    let marks = "`".repeat(longest_run(name) + 1);
    let edge = |letter: char| letter == '`' || letter == ' ';
    let pad = if name.starts_with(edge) || name.ends_with(edge) { " " } else { "" };
    format!("{marks}{pad}{name}{pad}{marks}")
}

/// A name between backticks at the start of a text, and the rest.
pub(super) fn unquote(text: &str) -> Option<(&str, &str)> {
    let length = text.len() - text.trim_start_matches('`').len();
    if length == 0 {
        return None;
    }
    let (mut at, inside) = (0, &text[length..]);
    while let Some(found) = inside[at..].find('`') {
        let start = at + found;
        let run = inside[start..].len() - inside[start..].trim_start_matches('`').len();
        if run == length {
            return Some((unpadded(&inside[..start]), &inside[start + run..]));
        }
        at = start + run;
    }
    None
}

fn unpadded(name: &str) -> &str {
    match name.strip_prefix(' ').and_then(|name| name.strip_suffix(' ')) {
        Some(inner) => inner,
        None => name,
    }
}

fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for letter in text.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
