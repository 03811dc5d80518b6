//! A transcript as one page of HTML that needs nothing else: no script, no font, no image. All text of others is escaped,
//! and the page forbids itself to load anything.

use lanyard_core::Timestamp;

use super::{LogForm, LogHead, OpenText, day_and_time, new_day};
use crate::render::text::harmless;
use crate::render::tool::{DetailRow, OpenedPart, ToolUse};
use crate::render::transcript::TranscriptItem;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2330;--paper:#fff;--soft:#667085;--line:#e4e7ec;--card:#f6f7f9;--own:#0b6bcb;\
--good:#157f3b;--bad:#c02626;--loud:#9a6700}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ee;--paper:#14171d;--soft:#98a1b3;--line:#2a2f3a;--card:#1c2029;\
--own:#6cb2ff;--good:#4cc273;--bad:#ff7b72;--loud:#e3b341}}\
body{margin:0 auto;max-width:54rem;padding:2rem 1.25rem 4rem;background:var(--paper);color:var(--ink);\
font:16px/1.55 system-ui,sans-serif}\
h1{font-size:1.4rem;margin:0 0 .25rem}h2{font-size:.85rem;color:var(--soft);border-bottom:1px solid var(--line);\
margin:2rem 0 1rem;padding-bottom:.25rem}\
.facts,time{color:var(--soft);font-size:.85rem}time{font-variant-numeric:tabular-nums;margin-right:.6rem}\
article{margin:1rem 0}article b{font-size:.9rem}.own b{color:var(--own)}\
.text{white-space:pre-wrap;overflow-wrap:anywhere;margin-top:.15rem}.own .text{border-left:3px solid var(--own);\
padding-left:.75rem}.thought .text{color:var(--soft);font-style:italic}\
.line{margin:.3rem 0;color:var(--soft);overflow-wrap:anywhere}.loud{color:var(--loud)}.good{color:var(--good)}\
.bad{color:var(--bad)}details{margin:.3rem 0;color:var(--soft)}summary{cursor:pointer;overflow-wrap:anywhere}\
pre{background:var(--card);color:var(--ink);border:1px solid var(--line);border-radius:6px;padding:.6rem .75rem;\
overflow-x:auto;font:13px/1.45 ui-monospace,monospace;margin:.4rem 0}pre i{color:var(--soft)}\
ins{color:var(--good);text-decoration:none}del{color:var(--bad);text-decoration:none}";

#[derive(Debug)]
pub(crate) struct HtmlForm {
    opened: OpenedPart,
    day: String,
    running: OpenText,
}

impl HtmlForm {
    pub(crate) fn new(opened: OpenedPart) -> Self {
        Self { opened, day: String::new(), running: OpenText::Nothing }
    }

    fn settle(&mut self) -> &'static str {
        match std::mem::take(&mut self.running) {
            OpenText::Nothing => "",
            OpenText::Words | OpenText::Thought => "</div></article>\n",
        }
    }

    /// The input and the output are always in the page, folded unless everything is opened.
    fn tool(&self, tool: &ToolUse) -> String {
        let class = if tool.failed() { " class=\"bad\"" } else { "" };
        let title = format!("{}{}", time(tool.at), escaped(&tool.line()));
        let rows = tool.details(OpenedPart::Everything);
        if rows.is_empty() {
            return format!("<div class=\"line\"><span{class}>{title}</span></div>\n");
        }
        let open =
            if self.opened == OpenedPart::Everything || !tool.changes().is_empty() { " open" } else { "" };
        let rows: String = rows.iter().map(detail).collect();
        format!("<details{open}><summary{class}>{title}</summary><pre>{rows}</pre></details>\n")
    }

    fn line(at: Timestamp, class: &str, text: &str) -> String {
        format!("<div class=\"line {class}\">{}{}</div>\n", time(at), escaped(text))
    }
}

impl LogForm for HtmlForm {
    fn head(&mut self, head: &LogHead) -> String {
        let title = escaped(&head.title);
        let facts: Vec<String> =
            [&head.id].into_iter().chain(&head.facts).map(|fact| escaped(fact)).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n<div class=\"facts\">{}</div>\n",
            facts.join(" · ")
        )
    }

    fn item(&mut self, at: Timestamp, item: &TranscriptItem) -> String {
        let mut out = String::new();
        if let Some(day) = new_day(&mut self.day, at) {
            out = format!("{}<h2>{day} (UTC)</h2>\n", self.settle());
        }
        let (kind, name, text, begins) = if let TranscriptItem::Words { who, text, begins, .. } = item {
            (OpenText::Words, who.as_str(), text, *begins)
        } else if let TranscriptItem::Thought(text) = item {
            (OpenText::Thought, "thinks", text, false)
        } else {
            out.push_str(self.settle());
            return out + &self.other(at, item);
        };
        if begins || self.running != kind {
            out.push_str(self.settle());
            let class = if kind == OpenText::Thought { "thought" } else { "agent" };
            out.push_str(&article(at, class, name));
            self.running = kind;
        }
        out + &escaped(text)
    }

    fn pause(&mut self) -> String {
        String::new()
    }

    fn end(&mut self) -> String {
        self.settle().to_owned() + "</body></html>\n"
    }
}

impl HtmlForm {
    fn other(&self, at: Timestamp, item: &TranscriptItem) -> String {
        match item {
            TranscriptItem::Prompt { from, text, steered } => {
                let how = if *steered { " (into the running turn)" } else { "" };
                let name = format!("{from}{how}");
                format!("{}{}</div></article>\n", article(at, "own", &name), escaped(text.trim()))
            }
            TranscriptItem::Tool(tool) => self.tool(tool),
            TranscriptItem::Note(text) => Self::line(at, "", text),
            TranscriptItem::Loud(text) => Self::line(at, "loud", text),
            TranscriptItem::Asks { title, .. } => {
                Self::line(at, "loud", &format!("asks for approval: {title}"))
            }
            TranscriptItem::End { text, completed: true } => Self::line(at, "good", text),
            TranscriptItem::End { text, completed: false } => Self::line(at, "bad", text),
            TranscriptItem::Words { .. } | TranscriptItem::Thought(_) | TranscriptItem::Returned(_) => {
                String::new()
            }
        }
    }
}

fn article(at: Timestamp, class: &str, name: &str) -> String {
    format!("<article class=\"{class}\">{}<b>{}</b><div class=\"text\">", time(at), escaped(name))
}

fn time(at: Timestamp) -> String {
    format!("<time>{}</time>", day_and_time(at).1)
}

fn detail(row: &DetailRow) -> String {
    match row {
        DetailRow::Label(text) => format!("<i>{}</i>\n", escaped(text)),
        DetailRow::Plain(text) => format!("{}\n", escaped(text)),
        DetailRow::Added(text) => format!("<ins>{}</ins>\n", escaped(text)),
        DetailRow::Removed(text) => format!("<del>{}</del>\n", escaped(text)),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in harmless(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
