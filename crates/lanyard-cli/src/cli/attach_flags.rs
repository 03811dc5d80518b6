//! `--attach`: files, stdin and links that go with a message. All of them are looked at before anything is sent.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lanyard_api::types::{NewPart, UploadedAttachment};
use lanyard_client::Route;
use lanyard_core::session::PARTS_MAX;

use crate::client::Client;
use crate::failure::Failure;

/// Bytes of a file that are read, whatever the daemon takes.
const READ_MAX: u64 = 256 << 20;
/// The value that stands for stdin.
const STDIN: &str = "-";

#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct AttachFlags {
    /// Attach a file or a link (`https://…`) to the message; `-` reads a file from stdin. Can be given more than once
    #[arg(long, short = 'a', value_name = "FILE")]
    attach: Vec<String>,
}

/// Something that goes with a message, read.
#[derive(Debug)]
pub(super) enum ReadPart {
    Content { name: Option<String>, content: Bytes },
    Link(String),
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
        self.attach.iter().map(|value| read(value)).collect()
    }
}

/// Sends what was read to the daemon, which keeps it under the hash of its content.
pub(super) async fn upload(client: &mut Client<'_>, parts: Vec<ReadPart>) -> Result<Vec<NewPart>, Failure> {
    let mut sent = Vec::with_capacity(parts.len());
    for part in parts {
        sent.push(match part {
            ReadPart::Link(uri) => NewPart::Link { uri, name: None },
            ReadPart::Content { name, content } => {
                let route = Route::to(&["attachments"]).with("name", name.as_ref());
                let kept: UploadedAttachment = client.upload(&route, content, None).await?;
                NewPart::Attachment { id: kept.id, name }
            }
        });
    }
    Ok(sent)
}

fn read(value: &str) -> Result<ReadPart, Failure> {
    if value == STDIN {
        let content = bounded(io::stdin(), "stdin")?;
        return Ok(ReadPart::Content { name: None, content });
    }
    if is_link(value) {
        return Ok(ReadPart::Link(value.to_owned()));
    }
    let path = PathBuf::from(value);
    let content = bounded(regular(&path)?, value)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(ReadPart::Content { name, content })
}

/// A scheme of letters, and two slashes.
fn is_link(value: &str) -> bool {
    let scheme = value.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Opens a regular file. A pipe or a device could block for ever, or never end.
fn regular(path: &Path) -> Result<File, Failure> {
    let shown = path.display();
    let unreadable = |error: &io::Error| {
        let missing = error.kind() == io::ErrorKind::NotFound;
        let advice =
            if missing { "name a file that exists" } else { "check its rights and those of its folder" };
        Failure::local("attachment_unreadable", format!("cannot attach {shown}: {error}"), advice)
    };
    let refused = |what: &str, advice: &str| {
        Err(Failure::local("attachment_unusable", format!("cannot attach {shown}: {what}"), advice))
    };
    let meta = path.metadata().map_err(|error| unreadable(&error))?;
    if meta.is_dir() {
        return refused("it is a folder", "name the files in it one by one");
    }
    if !meta.is_file() {
        return refused("it is no regular file", "read it into a file, or pipe it in with `-a -`");
    }
    if meta.len() == 0 {
        return refused("it is empty", "attach a file that has content");
    }
    File::open(path).map_err(|error| unreadable(&error))
}

fn bounded(from: impl Read, shown: &str) -> Result<Bytes, Failure> {
    let mut content = Vec::new();
    from.take(READ_MAX + 1).read_to_end(&mut content).map_err(|error| {
        Failure::local("attachment_unreadable", format!("cannot attach {shown}: {error}"), "check what it is")
    })?;
    if content.len() as u64 > READ_MAX {
        let title = format!("cannot attach {shown}: it is larger than {READ_MAX} bytes");
        return Err(Failure::local("attachment_unusable", title, "name its path in the message instead"));
    }
    if content.is_empty() {
        let title = format!("cannot attach {shown}: it is empty");
        return Err(Failure::local("attachment_unusable", title, "attach something that has content"));
    }
    Ok(content.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_told_from_paths() {
        for link in ["https://example.org/a", "file:///a", "git+ssh://x"] {
            assert!(is_link(link), "{link}");
        }
        for path in ["a.png", "./a://b", "://a", "C:\\a", "a b://c"] {
            assert!(!is_link(path), "{path}");
        }
    }

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
