//! `--attach`: files, stdin and links that go with a message. All of them are looked at before anything is sent.

use lanyard_core::session::PARTS_MAX;

use crate::client::attached::{ReadPart, read_named, read_stdin};
use crate::failure::Failure;

/// The value that stands for stdin.
const STDIN: &str = "-";

#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct AttachFlags {
    /// Attach a file or a link (`https://…`) to the message; `-` reads a file from stdin. Can be given more than once
    #[arg(long, short = 'a', value_name = "FILE")]
    attach: Vec<String>,
}

impl AttachFlags {
    /// Reads everything. `stdin_taken` is whether the message itself comes from stdin.
    pub(super) fn read(&self, stdin_taken: bool) -> Result<Vec<ReadPart>, Failure> {
        if self.attach.len() > PARTS_MAX {
            let title = format!("a message takes at most {PARTS_MAX} attachments");
            return Err(Failure::usage(title, "send further ones with another message"));
        }
        let stdins = self.attach.iter().filter(|value| *value == STDIN).count();
        if stdins + usize::from(stdin_taken) > 1 {
            return Err(Failure::usage("stdin can be read once", "name a file in place of one of the `-`"));
        }
        let read = |value: &String| if value == STDIN { read_stdin() } else { read_named(value) };
        self.attach.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_with_content_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path.display().to_string()
        };
        let flags = |values: &[String]| AttachFlags { attach: values.to_vec() };
        let good = file("a b.txt", "hello");
        let read = flags(std::slice::from_ref(&good)).read(false).unwrap();
        assert!(
            matches!(&read[0], ReadPart::Content { name: Some(name), content } if name == "a b.txt" && *content == "hello")
        );
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let bad = [
            file("empty", ""),
            folder.path().join("missing").display().to_string(),
            folder.path().display().to_string(),
            socket.display().to_string(),
        ];
        for value in bad {
            assert!(flags(std::slice::from_ref(&value)).read(false).is_err(), "{value}");
        }
        assert!(flags(&["-".to_owned()]).read(true).is_err());
        assert!(flags(&vec![good; PARTS_MAX + 1]).read(false).is_err());
    }
}
