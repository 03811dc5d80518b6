//! The recording of a terminal: asciicast 2, one line per piece of output. What is typed is not in it. A disk that fails and
//! a recording that is full end the recording, and never the program.

use std::fs::File;
use std::io::{self, Write};

use lanyard_core::session::WindowSize;
use serde_json::json;

use crate::runs::folder::{Folder, private};
use crate::runs::pty_helper::RECORDING;
use crate::runs::record::TerminalSpec;

/// Bytes of a character that is not whole.
const CHARACTER_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct Recording {
    /// None once it has ended.
    file: Option<File>,
    began: u64,
    len: u64,
    max: u64,
    /// The beginning of a character whose rest has not come.
    rest: Vec<u8>,
}

impl Recording {
    pub(super) fn create(folder: &Folder, spec: TerminalSpec, now: u64) -> io::Result<Self> {
        let file = private().write(true).create(true).truncate(true).open(folder.file(RECORDING))?;
        let mut recording =
            Self { file: Some(file), began: now, len: 0, max: spec.recording_max, rest: Vec::new() };
        let WindowSize { cols, rows } = spec.size;
        let head = json!({ "version": 2, "width": cols, "height": rows, "timestamp": spec.began_s });
        recording.line(&head);
        Ok(recording)
    }

    pub(super) fn output(&mut self, bytes: &[u8], now: u64) {
        if self.file.is_none() {
            return;
        }
        let mut bytes = [std::mem::take(&mut self.rest).as_slice(), bytes].concat();
        let whole = whole_characters(&bytes);
        self.rest = bytes.split_off(whole);
        if !bytes.is_empty() {
            self.event(now, "o", &String::from_utf8_lossy(&bytes));
        }
    }

    pub(super) fn resized(&mut self, size: WindowSize, now: u64) {
        self.event(now, "r", &format!("{}x{}", size.cols, size.rows));
    }

    fn event(&mut self, now: u64, code: &str, data: &str) {
        if self.len + data.len() as u64 > self.max {
            let words = format!("the recording ends here: it has its {} MiB", self.max >> 20);
            self.timed(now, "m", &words);
            self.file = None;
            return;
        }
        self.timed(now, code, data);
    }

    fn timed(&mut self, now: u64, code: &str, data: &str) {
        let ms = now.saturating_sub(self.began);
        // Written by hand: a float would not keep the milliseconds of a long run.
        let time = format!("{}.{:03}", ms / 1_000, ms % 1_000);
        let Ok(data) = serde_json::to_string(data) else { return };
        self.write(format!("[{time}, \"{code}\", {data}]\n").as_bytes());
    }

    fn line(&mut self, value: &serde_json::Value) {
        self.write(format!("{value}\n").as_bytes());
    }

    fn write(&mut self, line: &[u8]) {
        self.len += line.len() as u64;
        if self.file.as_mut().is_some_and(|file| file.write_all(line).is_err()) {
            self.file = None;
        }
    }
}

/// How many of the bytes are whole characters, or no characters at all.
fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(CHARACTER_MAX - 1);
    let start = (from..bytes.len()).rev().find(|at| bytes[*at] >= 0xC0);
    let Some(start) = start else { return bytes.len() };
    let wants = match bytes[start] {
        0xF0.. => 4,
        0xE0.. => 3,
        _ => 2,
    };
    if bytes.len() - start < wants { start } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_cut() {
        let text = "aö€😀".as_bytes();
        let whole: Vec<usize> = (0..=text.len()).map(|to| whole_characters(&text[..to])).collect();
        assert_eq!(whole, [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
        assert_eq!(whole_characters(b"\xff\xff"), 1);
        assert_eq!(whole_characters(b"\x80\x80\x80\x80"), 4);
    }

    #[test]
    fn a_recording_is_cut_with_a_marker_and_no_line_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder { path: dir.path().to_owned() };
        let spec = TerminalSpec { recording_max: 400, ..TerminalSpec::new(WindowSize::default(), 7) };
        let mut recording = Recording::create(&folder, spec, 1_000).unwrap();
        recording.output("ö".as_bytes().split_at(1).0, 1_001);
        recording.output(b"\xb6\x1b[1m", 1_250);
        recording.resized(WindowSize { cols: 100, rows: 30 }, 2_000);
        for _ in 0..100 {
            recording.output(b"more", 3_000);
        }
        let text = std::fs::read_to_string(folder.file(RECORDING)).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["version"], 2);
        assert_eq!(lines[1], json!([0.25, "o", "ö\u{1b}[1m"]));
        assert_eq!(lines[2], json!([1.0, "r", "100x30"]));
        let last = lines.last().unwrap();
        assert_eq!(last[1], "m");
        assert!(text.len() < 600, "{}", text.len());
    }
}
