//! Files, stdin and links that go with a message: read, and sent to the daemon.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lanyard_api::types::{NewPart, UploadedAttachment};
use lanyard_client::Route;

use crate::client::Client;
use crate::failure::Failure;

/// Bytes of a file that are read, whatever the daemon takes.
const READ_MAX: u64 = 256 << 20;

/// Something that goes with a message, read.
#[derive(Debug)]
pub(crate) enum ReadPart {
    Content { name: Option<String>, content: Bytes },
    Link(String),
}

/// Sends what was read to the daemon, which keeps it under the hash of its content.
pub(crate) async fn upload(client: &mut Client<'_>, parts: Vec<ReadPart>) -> Result<Vec<NewPart>, Failure> {
    let mut sent = Vec::with_capacity(parts.len());
    for part in parts {
        sent.push(keep(client, part).await?.part);
    }
    Ok(sent)
}

/// A part that can be named in a message.
#[derive(Debug)]
pub(crate) struct KeptPart {
    pub(crate) part: NewPart,
    pub(crate) is_image: bool,
}

pub(crate) async fn keep(client: &mut Client<'_>, part: ReadPart) -> Result<KeptPart, Failure> {
    match part {
        ReadPart::Link(uri) => Ok(KeptPart { part: NewPart::Link { uri, name: None }, is_image: false }),
        ReadPart::Content { name, content } => {
            let route = Route::to(&["attachments"]).with("name", name.as_ref());
            let kept: UploadedAttachment = client.upload(&route, content, None).await?;
            Ok(KeptPart { part: NewPart::Attachment { id: kept.id, name }, is_image: kept.image })
        }
    }
}

/// Reads stdin to its end.
pub(crate) fn read_stdin() -> Result<ReadPart, Failure> {
    Ok(ReadPart::Content { name: None, content: bounded(io::stdin(), "stdin")? })
}

/// Reads a regular file, or takes a link as it is.
pub(crate) fn read_named(value: &str) -> Result<ReadPart, Failure> {
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
}
