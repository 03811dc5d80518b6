//! Parts of a message beside its text: images, files and links. Events name them; their content lies beside the journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attachment::AttachmentId;
use crate::text::content_hash;

/// Parts that one message may have.
pub const PARTS_MAX: usize = 16;
/// Bytes of content of all of them. All of it goes to the agent as one line where its protocol takes images.
pub const PARTS_BYTES_MAX: u64 = 24 << 20;

/// A part of a message beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PromptPart {
    /// A raster image, by its content.
    Image(AttachedContent),
    /// Any other content.
    File(AttachedContent),
    /// Something that the agent may open by itself.
    Link {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

/// Content that lies beside the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachedContent {
    pub id: AttachmentId,
    /// As the content shows it, not as anybody claims it.
    pub media_type: String,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl PromptPart {
    /// Its content, where it has one beside the journal.
    #[must_use]
    pub const fn attached(&self) -> Option<&AttachedContent> {
        match self {
            Self::Image(attached) | Self::File(attached) => Some(attached),
            Self::Link { .. } => None,
        }
    }

    /// What people see in its place: `[image shot.png]`.
    #[must_use]
    pub fn label(&self) -> String {
        let name = |attached: &AttachedContent| match &attached.name {
            Some(name) => name.clone(),
            None => attached.media_type.clone(),
        };
        match self {
            Self::Image(attached) => format!("[image {}]", name(attached)),
            Self::File(attached) => format!("[file {}]", name(attached)),
            Self::Link { uri, name: None } => format!("[link {uri}]"),
            Self::Link { uri, name: Some(name) } => format!("[link {name}: {uri}]"),
        }
    }
}

/// The `type` of a block of a tool's answer that is an attachment.
pub const ATTACHMENT_BLOCK: &str = "attachment";

/// The attachments among the blocks of a tool's answer.
#[must_use]
pub fn attached_blocks(content: &Value) -> Vec<AttachmentId> {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    blocks.iter().filter_map(block_part).filter_map(|part| part.attached().map(|held| held.id)).collect()
}

/// A block of a tool's answer as an attachment.
#[must_use]
pub fn block_part(block: &Value) -> Option<PromptPart> {
    let is_one = block["type"] == ATTACHMENT_BLOCK;
    is_one.then(|| serde_json::from_value(block.clone()).ok()).flatten()
}

/// An attachment as a block of a tool's answer.
#[must_use]
pub fn part_block(part: &PromptPart) -> Value {
    let mut block = serde_json::to_value(part).unwrap_or_default();
    if let Value::Object(fields) = &mut block {
        fields.insert("type".to_owned(), ATTACHMENT_BLOCK.into());
    }
    block
}

/// The text of a message with its parts named below it.
#[must_use]
pub fn with_labels(text: &str, parts: &[PromptPart]) -> String {
    let mut whole = text.to_owned();
    for part in parts {
        if !whole.is_empty() {
            whole.push('\n');
        }
        whole.push_str(&part.label());
    }
    whole
}

/// The hash by which two messages are the same: of the text, and of what is attached to it.
#[must_use]
pub fn message_hash(prompt: &str, parts: &[PromptPart]) -> String {
    if parts.is_empty() {
        return content_hash(prompt.as_bytes());
    }
    content_hash(format!("{prompt}\0{}", identity(parts)).as_bytes())
}

/// What tells one list of parts from another. Empty where there are none.
#[must_use]
pub fn identity(parts: &[PromptPart]) -> String {
    let one = |part: &PromptPart| match part {
        PromptPart::Image(attached) | PromptPart::File(attached) => attached.id.to_string(),
        PromptPart::Link { uri, .. } => uri.clone(),
    };
    parts.iter().map(one).collect::<Vec<_>>().join("\0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: Option<&str>, bytes: u64) -> PromptPart {
        let name = name.map(str::to_owned);
        PromptPart::Image(AttachedContent {
            id: AttachmentId::of(b"x"),
            media_type: "image/png".to_owned(),
            bytes,
            name,
        })
    }

    #[test]
    fn the_same_words_about_another_image_are_another_message() {
        assert_eq!(message_hash("look", &[]), content_hash(b"look"));
        assert_ne!(message_hash("look", &[image(None, 1)]), message_hash("look", &[]));
        assert_eq!(with_labels("look", &[image(Some("a.png"), 1)]), "look\n[image a.png]");
    }
}
