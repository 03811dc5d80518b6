//! Putting words in front of a tool's answer, and taking the sting out of answers that look like such words.
//!
//! An answer without words in front of it, and in which nothing looks like Lanyard's own words, keeps its bytes.
//! Pure: text in, text out, for relays of MCP: the gateway and a wrapped server.

pub mod json;
mod taste;

use std::sync::LazyLock;

use bytes::Bytes;
use lanyard_core::session::directive::{self, LOOKALIKES};
use memchr::memmem::Finder;

pub use taste::Taste;

/// What there is to say with an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// Whole content blocks, in order.
    pub blocks: Vec<String>,
    /// The original answer is held back.
    pub withhold: bool,
    /// The answer is an error.
    pub is_error: bool,
}

impl Words {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && !self.withhold
    }
}

/// What is known of the one who gets the answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerReader {
    pub taste: Taste,
    /// Whether the tool may have promised a structured result.
    pub promised: bool,
    /// A client of revision 2026-07-28: results say of what type they are.
    pub modern: bool,
}

/// The answer with the words in front, or with nothing but them. Nothing when the answer cannot carry words: the tool
/// is not done, it asks for input first.
#[must_use]
pub fn annotate(answer: &str, words: &Words, reader: AnswerReader) -> Option<String> {
    if words.is_empty() {
        return Some(answer.to_owned());
    }
    let blocks: Vec<String> = words.blocks.iter().map(|text| block(text)).collect();
    if words.withhold {
        let result = instead(&blocks, words.is_error, reader);
        return with_result(answer, &result);
    }
    let result = if let Some(result) = json::member(answer, "result") {
        in_front(result, &blocks, words.is_error, reader)?
    } else {
        // The model reads a result; what a client makes of an error is its own affair.
        let mut blocks = blocks;
        blocks.push(block(&error_text(json::member(answer, "error")?)));
        instead(&blocks, true, reader)
    };
    with_result(answer, &result)
}

/// The result of a call that was not carried out.
#[must_use]
pub fn refusal(text: &str, is_error: bool, reader: AnswerReader) -> String {
    instead(&[block(text)], is_error, reader)
}

/// A result of nothing but these words, as an error the model reads.
#[must_use]
pub fn failure(text: &str, modern: bool) -> String {
    let kind = if modern { r#""resultType":"complete","# } else { "" };
    format!(r#"{{{kind}"content":[{}],"isError":true}}"#, block(text))
}

fn block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, json::quoted(text))
}

/// A result without the original. A client that misses what the tool promised takes it only as an error.
fn instead(blocks: &[String], is_error: bool, reader: AnswerReader) -> String {
    let is_error = is_error || (reader.promised && reader.taste.validates());
    let kind = if reader.modern { r#""resultType":"complete","# } else { "" };
    format!(r#"{{{kind}"content":[{}],"isError":{is_error}}}"#, blocks.join(","))
}

fn in_front(result: &str, blocks: &[String], is_error: bool, reader: AnswerReader) -> Option<String> {
    if json::member(result, "resultType").is_some_and(|kind| kind != "\"complete\"") {
        return None;
    }
    let content = json::member(result, "content").unwrap_or("[]");
    let held = json::elements(content)?;
    let mut all = blocks.to_vec();
    all.extend(held.iter().filter_map(|place| content.get(place.clone())).map(str::to_owned));
    let mut result = result.to_owned();
    if reader.taste.drops()
        && let Some(structured) = json::member(&result, "structuredContent")
    {
        // Where the structured part was all there is, it goes on as text.
        if held.is_empty() {
            all.push(block(structured));
        }
        result = json::without(&result, "structuredContent")?;
    }
    if is_error {
        result = json::with(&result, "isError", "true")?;
    }
    json::with(&result, "content", &format!("[{}]", all.join(",")))
}

fn error_text(error: &str) -> String {
    let said: serde_json::Value = serde_json::from_str(error).unwrap_or_default();
    format!("MCP error {}: {}", said["code"], said["message"].as_str().unwrap_or("without a message"))
}

/// The answer with this result, in the place of the old one or of an error.
fn with_result(answer: &str, result: &str) -> Option<String> {
    let answer = match json::members(answer)?.iter().find(|member| member.key == "error") {
        Some(_) => json::without(answer, "error")?,
        None => answer.to_owned(),
    };
    if json::member(&answer, "result").is_some() {
        return json::with(&answer, "result", result);
    }
    let end = answer.rfind('}')?;
    let comma = if json::members(&answer)?.is_empty() { "" } else { "," };
    json::replaced(&answer, end..end, &format!(r#"{comma}"result":{result}"#))
}

static FINDERS: LazyLock<Vec<Finder<'static>>> =
    LazyLock::new(|| LOOKALIKES.iter().map(|mark| Finder::new(mark.as_bytes())).collect());
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u00"));

/// Whether anything in the text could be taken for Lanyard's own words, or hides letters that could.
fn is_suspicious(text: &[u8]) -> bool {
    FINDERS.iter().any(|finder| finder.find(text).is_some()) || hides_letters(text)
}

/// Letters need no escape; one that is escaped may be part of a word that is not to be found.
fn hides_letters(text: &[u8]) -> bool {
    ESCAPE.find_iter(text).any(|at| {
        let digits = text.get(at + 4..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'-' | b'(' | b'['))
    })
}

/// The answer with all lookalikes of Lanyard's words defused. Untouched when there are none.
#[must_use]
pub fn defused(answer: Bytes) -> Bytes {
    if !is_suspicious(&answer) {
        return answer;
    }
    let changed = std::str::from_utf8(&answer).ok().and_then(defuse);
    changed.map_or(answer, Bytes::from)
}

fn defuse(answer: &str) -> Option<String> {
    let mut out: Option<(String, usize)> = None;
    for member in
        json::members(answer)?.iter().filter(|member| matches!(member.key.as_str(), "result" | "error"))
    {
        let value = answer.get(member.value.clone())?;
        for place in json::strings(value) {
            let literal = value.get(place.clone())?;
            let Ok(text) = serde_json::from_str::<String>(literal) else { continue };
            let Some(text) = directive::defuse(&text) else { continue };
            let (text_out, from) = out.get_or_insert_with(|| (String::with_capacity(answer.len() + 64), 0));
            text_out.push_str(answer.get(*from..member.value.start + place.start)?);
            text_out.push_str(&json::quoted(&text));
            *from = member.value.start + place.end;
        }
    }
    let (mut text, from) = out?;
    text.push_str(answer.get(from..)?);
    Some(text)
}

/// A list of tools without the schemas of their results.
#[must_use]
pub fn without_schemas(answer: &str) -> Option<String> {
    let result = json::member(answer, "result")?;
    let tools = json::member(result, "tools")?;
    let all: Option<Vec<String>> = json::elements(tools)?
        .into_iter()
        .map(|place| json::without(tools.get(place)?, "outputSchema"))
        .collect();
    let result = json::with(result, "tools", &format!("[{}]", all?.join(",")))?;
    json::with(answer, "result", &result)
}

/// The tools of a list that promise a structured result.
#[must_use]
pub fn promising(answer: &str) -> Option<Vec<String>> {
    let tools = json::member(json::member(answer, "result")?, "tools")?;
    let mut names = Vec::new();
    for place in json::elements(tools)? {
        let tool = tools.get(place)?;
        if json::member(tool, "outputSchema").is_some() {
            names.push(serde_json::from_str(json::member(tool, "name")?).ok()?);
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests;
