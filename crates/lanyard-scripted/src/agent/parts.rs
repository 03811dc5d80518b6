//! Parts of prompts, as a sentence, and images in messages and results.

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, EmbeddedResourceResource, ImageContent, SessionUpdate,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::tools::Ended;
use super::turn::Turn;

/// What a prompt consists of: `text, image image/png of 70 bytes`.
pub(super) fn told(prompt: &[ContentBlock]) -> String {
    let one = |block: &ContentBlock| match block {
        ContentBlock::Text(_) => "text".to_owned(),
        ContentBlock::Image(image) => {
            let bytes = STANDARD.decode(&image.data).map_or(0, |content| content.len());
            format!("image {} of {bytes} bytes", image.mime_type)
        }
        ContentBlock::ResourceLink(link) => format!("link {} {}", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                format!("file of {} bytes", text.text.len())
            }
            EmbeddedResourceResource::BlobResourceContents(_) | _ => "file".to_owned(),
        },
        ContentBlock::Audio(_) | _ => "something else".to_owned(),
    };
    prompt.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Turn {
    pub(super) fn show_image(&mut self, path: &str) {
        match self.image(path) {
            Ok(image) => {
                let chunk = ContentChunk::new(ContentBlock::Image(image)).message_id(self.message_id());
                self.update(SessionUpdate::AgentMessageChunk(chunk));
            }
            Err(why) => self.say_chunk(&why),
        }
    }

    pub(super) fn return_image(&mut self, path: &str) {
        let id = self.open_tool("screenshot", json!({ "path": path }));
        let ended = match self.image(path) {
            Ok(image) => Ended { content: vec![ContentBlock::Image(image).into()], ..Ended::text(true, "") },
            Err(why) => Ended::text(false, why),
        };
        self.close_tool(&id, ended);
    }

    fn image(&self, path: &str) -> Result<ImageContent, String> {
        let content =
            std::fs::read(self.path(path)).map_err(|error| format!("cannot read {path}: {error}"))?;
        Ok(ImageContent::new(STANDARD.encode(content), "image/png"))
    }
}
