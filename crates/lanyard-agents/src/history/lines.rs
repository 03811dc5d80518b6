//! Lines of a file that another program writes, each of bounded size.

use std::io::{self, BufRead, BufReader, Read};

/// Bytes of one line. Images in a conversation are kept in its lines.
const LINE_BYTES_MAX: usize = 8 << 20;

pub(super) struct BoundedLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

/// What follows in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextLine<'a> {
    Whole(&'a [u8]),
    /// It is longer than a line may be; its content was passed over.
    TooLong,
}

impl<R: Read> BoundedLines<R> {
    pub(super) fn new(file: R) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, file), line: Vec::new() }
    }

    /// The next line without its end. The last one may lack an end: it is being written, or was cut.
    pub(super) fn next(&mut self) -> io::Result<Option<NextLine<'_>>> {
        self.line.clear();
        let (mut begun, mut long) = (false, false);
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            begun = true;
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.line.len() + part.len() > LINE_BYTES_MAX {
                long = true;
                self.line.clear();
            }
            if !long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(match (begun, long) {
            (false, _) => None,
            (true, true) => Some(NextLine::TooLong),
            (true, false) => Some(NextLine::Whole(&self.line)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_passed_over_and_the_next_is_whole() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let mut text = b"one\n\n".to_vec();
        text.extend_from_slice(&long);
        text.extend_from_slice(b"\ntwo\ncut");
        let mut lines = BoundedLines::new(&text[..]);
        assert_eq!(lines.next().unwrap(), Some(NextLine::Whole(b"one")));
        assert_eq!(lines.next().unwrap(), Some(NextLine::Whole(b"")));
        assert_eq!(lines.next().unwrap(), Some(NextLine::TooLong));
        assert_eq!(lines.next().unwrap(), Some(NextLine::Whole(b"two")));
        assert_eq!(lines.next().unwrap(), Some(NextLine::Whole(b"cut")));
        assert_eq!(lines.next().unwrap(), None);
    }
}
