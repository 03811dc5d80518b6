//! Orders in and lines out.

use lanyard_client::lines::{LineRead, StdoutLines, Written, stdin_lines};
use lanyard_client::rpc::line_of;
use serde_json::Value;
use tokio::sync::mpsc;

/// The longest line taken; a prompt is far shorter.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Orders read ahead.
const ORDERS_MAX: usize = 64;
/// Lines waiting for the reader; when it is full the bridge waits, and then the server does.
const LINES_MAX: usize = 1_024;

/// Orders on stdin, until its end.
pub(super) struct Orders(mpsc::Receiver<LineRead>);

impl Orders {
    pub(super) fn open() -> Self {
        Self(stdin_lines(LINE_BYTES_MAX, ORDERS_MAX))
    }

    /// The next order, or what is wrong with it; `None` when there will be no more.
    pub(super) async fn next(&mut self) -> Option<Result<Value, String>> {
        self.0.recv().await.map(|line| read(&line))
    }
}

fn read(line: &LineRead) -> Result<Value, String> {
    match line {
        LineRead::Line(line) if !line.ends_with(b"\n") => {
            Err(format!("a line of {} bytes without an end", line.len()))
        }
        LineRead::Line(line) => serde_json::from_slice(line).map_err(|error| format!("no JSON: {error}")),
        LineRead::TooLong => Err(format!("a line of more than {LINE_BYTES_MAX} bytes")),
    }
}

/// Where lines go.
#[derive(Debug)]
pub(super) struct Output {
    lines: StdoutLines,
    written: Written,
}

impl Output {
    pub(super) fn open() -> Self {
        let (lines, written) = StdoutLines::open(LINES_MAX);
        Self { lines, written }
    }

    /// Waits for room. False when the other end is closed.
    pub(super) async fn say(&self, line: Value) -> bool {
        self.lines.send(line_of(&line)).await
    }

    /// The last line, and the end.
    pub(super) async fn close(self, last: Value) {
        self.say(last).await;
        self.lines.close(self.written).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_order_is_a_whole_line_of_json() {
        let line = |text: &str| LineRead::Line(text.as_bytes().to_vec());
        assert_eq!(read(&line("{\"id\":1}\n")), Ok(json!({"id": 1})));
        assert!(read(&line("nonsense\n")).unwrap_err().starts_with("no JSON"));
        assert_eq!(read(&line("half")), Err("a line of 4 bytes without an end".to_owned()));
        assert!(read(&LineRead::TooLong).unwrap_err().starts_with("a line of more than"));
    }
}
