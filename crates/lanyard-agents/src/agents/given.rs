//! A prompt as an agent is given it: its text, and what is attached. Drivers say which parts their agent takes as they are;
//! all others are named below the text, with the path of a copy that the agent can read.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lanyard_core::SessionId;
use lanyard_core::session::{AttachedContent, PromptPart};
use lanyard_store::Attachments;

use super::shared::Shared;

/// Bytes of an image that goes along in the agent's protocol. Providers refuse larger ones; those go as a path.
const INLINE_IMAGE_MAX: u64 = 3_600_000;
/// Bytes of a text file that goes along.
const INLINE_TEXT_MAX: u64 = 128 * 1024;

/// A prompt for an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GivenPrompt<'a> {
    pub(crate) text: &'a str,
    /// Only parts that the driver takes.
    pub(crate) parts: &'a [GivenPart],
}

impl<'a> From<&'a str> for GivenPrompt<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, parts: &[] }
    }
}

/// A part of a prompt with what there is of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenPart {
    pub(crate) part: PromptPart,
    pub(crate) content: GivenContent,
}

/// The content of a part, as far as a driver can use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GivenContent {
    /// A link: there is none.
    Elsewhere,
    /// A copy that the agent's processes can read, and the content itself where it is small.
    Copied { path: PathBuf, inline: Option<InlineContent> },
    /// It is missing or damaged, or there is no room for a copy.
    Lost { why: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InlineContent {
    /// An image, in base64.
    Image(String),
    Text(String),
}

impl GivenPart {
    /// The image and its content in base64, where it can go along.
    pub(crate) fn image(&self) -> Option<(&AttachedContent, &str)> {
        let PromptPart::Image(attached) = &self.part else { return None };
        let GivenContent::Copied { inline: Some(InlineContent::Image(data)), .. } = &self.content else {
            return None;
        };
        Some((attached, data))
    }

    /// The path of its copy.
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        match &self.content {
            GivenContent::Copied { path, .. } => Some(path),
            GivenContent::Elsewhere | GivenContent::Lost { .. } => None,
        }
    }
}

impl Shared {
    /// The parts of a message with their content. `owner` is the session whose process reads the copies.
    pub(super) async fn given(&self, owner: SessionId, parts: &[PromptPart]) -> Vec<GivenPart> {
        if parts.is_empty() {
            return Vec::new();
        }
        let (attachments, parts) = (self.attachments.clone(), parts.to_vec());
        let given = tokio::task::spawn_blocking(move || {
            parts.into_iter().map(|part| give(&attachments, owner, part)).collect::<Vec<_>>()
        });
        given.await.unwrap_or_default()
    }
}

fn give(attachments: &Arc<Attachments>, owner: SessionId, part: PromptPart) -> GivenPart {
    let content = match &part {
        PromptPart::Link { .. } => GivenContent::Elsewhere,
        PromptPart::Image(attached) | PromptPart::File(attached) => copied(attachments, owner, &part, attached)
            .unwrap_or_else(|why| {
                tracing::warn!(session = %owner, attachment = %attached.id, why, "an attachment cannot be given to the agent");
                GivenContent::Lost { why }
            }),
    };
    GivenPart { part, content }
}

fn copied(
    attachments: &Attachments,
    owner: SessionId,
    part: &PromptPart,
    attached: &AttachedContent,
) -> Result<GivenContent, String> {
    let content = attachments.read(attached.id).map_err(|error| error.to_string())?;
    let path = attachments.show(owner, attached.id, attached.name.as_deref(), &content);
    let path = path.map_err(|error| lanyard_base::error_chain(&error))?;
    let bytes = content.len() as u64;
    let inline = match part {
        PromptPart::Image(_) => {
            (bytes <= INLINE_IMAGE_MAX).then(|| InlineContent::Image(STANDARD.encode(&content)))
        }
        PromptPart::File(_) => {
            let text = (bytes <= INLINE_TEXT_MAX).then(|| String::from_utf8(content).ok()).flatten();
            text.map(InlineContent::Text)
        }
        PromptPart::Link { .. } => None,
    };
    Ok(GivenContent::Copied { path, inline })
}

/// A text, and below it the parts that do not go along with it.
pub(super) fn with_parts(text: &str, parts: &[GivenPart]) -> String {
    let mut whole = text.to_owned();
    if parts.is_empty() {
        return whole;
    }
    if !whole.is_empty() {
        whole.push_str("\n\n");
    }
    whole.push_str("Attached to this message:");
    for part in parts {
        let _ = write!(whole, "\n- {}", line(part));
    }
    whole
}

fn line(given: &GivenPart) -> String {
    let (kind, attached) = match &given.part {
        PromptPart::Link { uri, name: None } => return format!("link: {uri}"),
        PromptPart::Link { uri, name: Some(name) } => return format!("link {name}: {uri}"),
        PromptPart::Image(attached) => ("image", attached),
        PromptPart::File(attached) => ("file", attached),
    };
    let name = attached.name.as_deref().unwrap_or("without a name");
    let about = format!("{kind} {name} ({}, {} bytes)", attached.media_type, attached.bytes);
    match &given.content {
        GivenContent::Copied { path, .. } => format!("{about}, a read-only copy of it: {}", path.display()),
        GivenContent::Lost { why } => format!("{about}, which cannot be had: {why}"),
        GivenContent::Elsewhere => about,
    }
}

/// An image, a file and a link.
#[cfg(test)]
pub(crate) fn sample() -> Vec<GivenPart> {
    let attached = |media_type: &str, name: &str| AttachedContent {
        id: lanyard_core::AttachmentId::of(b"hi"),
        media_type: media_type.to_owned(),
        bytes: 2,
        name: Some(name.to_owned()),
    };
    let copied = |name: &str, inline| GivenContent::Copied {
        path: PathBuf::from(format!("/s/{name}")),
        inline: Some(inline),
    };
    let link = PromptPart::Link { uri: "https://x".to_owned(), name: Some("x".to_owned()) };
    vec![
        GivenPart {
            part: PromptPart::Image(attached("image/png", "a.png")),
            content: copied("a.png", InlineContent::Image("aGk=".to_owned())),
        },
        GivenPart {
            part: PromptPart::File(attached("text/plain", "a.txt")),
            content: copied("a.txt", InlineContent::Text("hi".to_owned())),
        },
        GivenPart { part: link, content: GivenContent::Elsewhere },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanyard_core::AttachmentId;

    /// What Claude Code, Codex and OpenCode are told of a picture.
    #[test]
    fn a_picture_in_the_terms_of_each_agent() {
        use crate::agents::{claude, codex, opencode};
        let parts = sample();
        let prompt = GivenPrompt { text: "look", parts: &parts[..1] };
        let line: serde_json::Value = serde_json::from_str(&claude::asks::named_prompt("t", prompt)).unwrap();
        let source = serde_json::json!({ "type": "base64", "media_type": "image/png", "data": "aGk=" });
        assert_eq!(
            line["message"]["content"],
            serde_json::json!([{ "type": "image", "source": source }, { "type": "text", "text": "look" }])
        );
        assert_eq!(
            codex::wire::input(prompt),
            serde_json::json!([{ "type": "localImage", "path": "/s/a.png" }, { "type": "text", "text": "look" }])
        );
        let file = serde_json::json!({
            "type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,aGk=",
        });
        assert_eq!(opencode::orders::files(&parts), serde_json::json!([file]));
        assert_eq!(opencode::orders::files(&[]), serde_json::Value::Null);
    }

    #[test]
    fn what_does_not_go_along_is_named_below_the_text_with_its_path() {
        let attached = |name: Option<&str>| AttachedContent {
            id: AttachmentId::of(b"x"),
            media_type: "image/png".to_owned(),
            bytes: 9,
            name: name.map(str::to_owned),
        };
        let copied = GivenContent::Copied { path: "/s/ab-shot.png".into(), inline: None };
        let lost = GivenContent::Lost { why: "it is gone".to_owned() };
        let link = PromptPart::Link { uri: "file:///a".to_owned(), name: None };
        let parts = [
            GivenPart { part: PromptPart::Image(attached(Some("shot.png"))), content: copied },
            GivenPart { part: PromptPart::File(attached(None)), content: lost },
            GivenPart { part: link, content: GivenContent::Elsewhere },
        ];
        assert_eq!(
            with_parts("look", &parts),
            "look\n\nAttached to this message:\n\
             - image shot.png (image/png, 9 bytes), a read-only copy of it: /s/ab-shot.png\n\
             - file without a name (image/png, 9 bytes), which cannot be had: it is gone\n\
             - link: file:///a"
        );
        assert_eq!(with_parts("look", &[]), "look");
    }
}
