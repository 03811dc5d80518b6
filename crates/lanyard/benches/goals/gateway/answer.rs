//! HTTP answers of any server: with a length, in chunks, or empty.

use anyhow::{Context, Result};

/// An answer while it arrives.
#[derive(Debug, Default)]
pub(super) struct Answer(Vec<u8>);

/// A complete answer.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) good: bool,
    /// With the sizes of its chunks still in it, where it came in chunks.
    pub(super) body: Vec<u8>,
    /// The MCP session it names.
    pub(super) session: Option<String>,
    /// No further request may be sent on its connection.
    pub(super) ends: bool,
}

impl Answer {
    /// Adds what arrived; the answer when it is complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Option<Told>> {
        self.0.extend_from_slice(bytes);
        let Some(head) = self.0.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&self.0[..head]).context("the answer's head is no text")?;
        let status = text.split(' ').nth(1).unwrap_or_default();
        let length = header(text, "content-length").map(str::parse).transpose()?;
        let length = match (header(text, "transfer-encoding"), length) {
            (Some("chunked"), _) => chunked(&self.0[head + 4..])?,
            (_, Some(length)) => Some(length),
            (_, None) => Some(0),
        };
        let Some(length) = length.filter(|length| self.0.len() >= head + 4 + length) else { return Ok(None) };
        let told = Told {
            good: status.starts_with('2'),
            body: self.0[head + 4..head + 4 + length].to_vec(),
            session: header(text, "mcp-session-id").map(str::to_owned),
            ends: header(text, "connection").is_some_and(|word| word.eq_ignore_ascii_case("close")),
        };
        self.0.drain(..head + 4 + length);
        Ok(Some(told))
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(held, _)| held.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// How long a body in chunks is, once its last one is there.
fn chunked(body: &[u8]) -> Result<Option<usize>> {
    let mut at = 0;
    loop {
        let Some(line) = body[at..].windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&body[at..at + line])?.split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size.trim(), 16).context("a chunk without a size")?;
        at += line + 2 + size + 2;
        if body.len() < at {
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(at));
        }
    }
}
