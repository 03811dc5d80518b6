//! Images that agents send, out of their lines and into the store of attachments. What cannot be kept is said in its place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lanyard_core::SessionId;
use lanyard_core::attachment::sniff;
use lanyard_core::session::{AttachedContent, PromptPart, part_block};
use lanyard_store::UploadBounds;
use serde_json::{Value, json};

use super::shared::Shared;

/// Images of one answer that are kept.
const IMAGES_MAX: usize = 16;

impl Shared {
    /// Keeps an image that an agent sent in base64, as the session's. The error is a sentence for the log.
    pub(super) async fn keep_image(&self, session: SessionId, data: String) -> Result<PromptPart, String> {
        let (attachments, now) = (self.attachments.clone(), self.clock.now());
        let storage = self.settings.now().config.storage;
        let bounds = UploadBounds { one_max: storage.attachment_bytes, all_max: storage.attachments_bytes };
        let kept = tokio::task::spawn_blocking(move || {
            let content = STANDARD.decode(data.trim()).map_err(|_| "it is not base64".to_owned())?;
            let kind = sniff(&content);
            if !kind.image {
                return Err(format!("its content is {}", kind.media_type));
            }
            let kept = attachments.put(&content, bounds, now).map_err(|error| error.to_string())?;
            // Marked before the event that names it is written.
            attachments.mark(session, &[kept.id], now).map_err(|error| error.to_string())?;
            let media_type = kind.media_type.to_owned();
            Ok(PromptPart::Image(AttachedContent { id: kept.id, media_type, bytes: kept.bytes, name: None }))
        });
        kept.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Replaces the images in the blocks of a tool's answer by attachments.
    pub(super) async fn keep_images(&self, session: SessionId, content: &mut Value) {
        let Value::Array(blocks) = content else { return };
        let mut images = 0;
        for block in blocks {
            let Some(data) = image_in(block) else { continue };
            images += 1;
            let kept = if images > IMAGES_MAX {
                Err(format!("an answer has at most {IMAGES_MAX} images"))
            } else {
                self.keep_image(session, data).await
            };
            *block = match kept {
                Ok(part) => part_block(&part),
                Err(why) => json!({ "type": "text", "text": left_out(&why) }),
            };
        }
    }
}

/// What stands in the place of an image that was not kept.
pub(super) fn left_out(why: &str) -> String {
    format!("[image, left out: {why}]")
}

/// The content of an image block, in the form of MCP and ACP or of Anthropic's API.
fn image_in(block: &Value) -> Option<String> {
    if block["type"] != "image" {
        return None;
    }
    let source = &block["source"];
    let data =
        block["data"].as_str().or_else(|| source["data"].as_str().filter(|_| source["type"] == "base64"));
    data.map(str::to_owned)
}
