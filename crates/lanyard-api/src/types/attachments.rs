//! Attachments, and the parts of a message that refer to them.

use lanyard_core::AttachmentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Content that is kept, and that messages can refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadedAttachment {
    /// The hash of its content.
    pub id: AttachmentId,
    pub bytes: u64,
    /// As the content shows it.
    pub media_type: String,
    /// An image of a kind that agents and browsers take.
    pub image: bool,
    /// As the request named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A part of a message beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NewPart {
    /// Content that was uploaded before.
    Attachment {
        id: AttachmentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Something that the agent may open by itself.
    Link {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}
