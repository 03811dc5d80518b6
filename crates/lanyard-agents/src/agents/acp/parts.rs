//! Parts of a prompt as blocks of content.

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, ResourceLink,
    TextResourceContents,
};
use lanyard_core::session::PromptPart;

use crate::agents::given::{GivenContent, GivenPart, GivenPrompt, InlineContent};

/// Links go to every agent, and files as links; an image only to one that takes images.
pub(super) fn takes(part: &GivenPart, images: bool) -> bool {
    match (&part.part, &part.content) {
        (PromptPart::Link { .. }, _) => true,
        (PromptPart::Image(_), _) => images && part.image().is_some(),
        (PromptPart::File(_), content) => match content {
            GivenContent::Copied { .. } => true,
            GivenContent::Elsewhere | GivenContent::Lost { .. } => false,
        },
    }
}

/// The text first, unless there is none.
pub(super) fn blocks(prompt: GivenPrompt<'_>, embeds: bool) -> Vec<ContentBlock> {
    let text = Some(prompt.text).filter(|text| !text.is_empty() || prompt.parts.is_empty());
    text.map(ContentBlock::from)
        .into_iter()
        .chain(prompt.parts.iter().filter_map(|part| block(part, embeds)))
        .collect()
}

fn block(part: &GivenPart, embeds: bool) -> Option<ContentBlock> {
    match &part.part {
        PromptPart::Link { uri, name } => {
            let name = name.clone().unwrap_or_else(|| uri.clone());
            Some(ContentBlock::ResourceLink(ResourceLink::new(name, uri.clone())))
        }
        PromptPart::Image(attached) => {
            let (_, data) = part.image()?;
            Some(ContentBlock::Image(ImageContent::new(data, attached.media_type.clone())))
        }
        PromptPart::File(attached) => {
            let GivenContent::Copied { path, inline } = &part.content else { return None };
            let uri = format!("file://{}", path.display());
            if let (true, Some(InlineContent::Text(text))) = (embeds, inline) {
                let text =
                    TextResourceContents::new(text.clone(), uri).mime_type(attached.media_type.clone());
                let resource = EmbeddedResourceResource::TextResourceContents(text);
                return Some(ContentBlock::Resource(EmbeddedResource::new(resource)));
            }
            let name = attached.name.clone().unwrap_or_else(|| uri.clone());
            let size = i64::try_from(attached.bytes).ok();
            Some(ContentBlock::ResourceLink(
                ResourceLink::new(name, uri).mime_type(attached.media_type.clone()).size(size),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::agents::given::sample;

    fn told(parts: &[GivenPart], embeds: bool) -> Value {
        serde_json::to_value(blocks(GivenPrompt { text: "look", parts }, embeds)).unwrap()
    }

    #[test]
    fn parts_are_blocks_of_the_protocol() {
        let parts = sample();
        let text = json!({ "type": "text", "text": "look" });
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "aGk=" });
        let link = json!({ "type": "resource_link", "name": "x", "uri": "https://x" });
        let file = json!({
            "type": "resource_link", "name": "a.txt", "uri": "file:///s/a.txt", "mimeType": "text/plain", "size": 2,
        });
        assert_eq!(told(&parts, false), json!([text, image, file, link]));
        let inside = json!({
            "type": "resource", "resource": { "uri": "file:///s/a.txt", "mimeType": "text/plain", "text": "hi" },
        });
        assert_eq!(told(&parts, true), json!([text, image, inside, link]));
        assert_eq!(told(&[], true), json!([text]));
        let picture =
            serde_json::to_value(blocks(GivenPrompt { text: "", parts: &parts[..1] }, true)).unwrap();
        assert_eq!(picture, json!([image]));
    }

    #[test]
    fn an_image_goes_only_to_an_agent_that_takes_images() {
        let [image, file, link] = &sample()[..] else { panic!() };
        assert!(takes(image, true) && !takes(image, false) && takes(file, false) && takes(link, false));
        let lost = GivenPart { content: GivenContent::Lost { why: String::new() }, ..image.clone() };
        assert!(!takes(&lost, true));
    }
}
