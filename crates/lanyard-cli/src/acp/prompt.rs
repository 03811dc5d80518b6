//! A prompt of an editor: its text, and the content that goes with it.

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lanyard_core::session::PARTS_MAX;

/// A prompt, read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditorPrompt {
    pub(super) text: String,
    pub(super) contents: Vec<EditorContent>,
}

/// Content that the daemon is to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditorContent {
    pub(super) name: Option<String>,
    /// The editor's claim; the daemon compares it with the content.
    pub(super) media_type: Option<String>,
    pub(super) content: Bytes,
}

impl EditorPrompt {
    /// What can neither be text nor be kept is refused rather than dropped.
    pub(super) fn read(blocks: Vec<ContentBlock>) -> Result<Self, Error> {
        let mut prompt = Self { text: String::new(), contents: Vec::new() };
        let mut texts = Vec::new();
        for block in blocks {
            match block {
                ContentBlock::Text(text) => texts.push(text.text),
                ContentBlock::ResourceLink(link) => texts.push(format!("[{}]({})", link.name, link.uri)),
                ContentBlock::Resource(resource) => match resource.resource {
                    EmbeddedResourceResource::TextResourceContents(text) => {
                        texts.push(format!("<context ref=\"{}\">\n{}\n</context>", text.uri, text.text));
                    }
                    EmbeddedResourceResource::BlobResourceContents(blob) => {
                        prompt.keep(last_segment(&blob.uri), blob.mime_type, &blob.blob)?;
                    }
                    _ => return refused("this kind of resource"),
                },
                ContentBlock::Image(image) => {
                    let name = image.uri.as_deref().and_then(last_segment);
                    prompt.keep(name, Some(image.mime_type), &image.data)?;
                }
                ContentBlock::Audio(_) => return refused("a recording"),
                _ => return refused("this kind of content"),
            }
        }
        prompt.text = texts.join("\n");
        if prompt.text.trim().is_empty() && prompt.contents.is_empty() {
            return Err(Error::invalid_params().data("the prompt is empty"));
        }
        Ok(prompt)
    }

    fn keep(&mut self, name: Option<String>, media_type: Option<String>, data: &str) -> Result<(), Error> {
        if self.contents.len() >= PARTS_MAX {
            return refused(&format!("more than {PARTS_MAX} attachments"));
        }
        let content = STANDARD
            .decode(data.trim())
            .map_err(|_| Error::invalid_params().data("the content of an attachment is not base64"))?;
        self.contents.push(EditorContent { name, media_type, content: content.into() });
        Ok(())
    }
}

fn refused<T>(what: &str) -> Result<T, Error> {
    Err(Error::invalid_params().data(format!("{what} cannot be taken in a prompt")))
}

/// The name at the end of an address.
fn last_segment(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{
        AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink,
        TextResourceContents,
    };

    use super::*;

    #[test]
    fn a_prompt_is_text_with_what_it_refers_to_and_content_to_be_kept() {
        let file = TextResourceContents::new("fn main() {}", "file:///w/main.rs");
        let file = EmbeddedResourceResource::TextResourceContents(file);
        let blob = BlobResourceContents::new("AAE=", "file:///w/a.bin");
        let blob = EmbeddedResourceResource::BlobResourceContents(blob);
        let prompt = EditorPrompt::read(vec![
            ContentBlock::from("look at this"),
            ContentBlock::ResourceLink(ResourceLink::new("lib.rs", "file:///w/lib.rs")),
            ContentBlock::Resource(EmbeddedResource::new(file)),
            ContentBlock::Resource(EmbeddedResource::new(blob)),
            ContentBlock::Image(ImageContent::new("aGk=", "image/png")),
        ])
        .unwrap();
        assert_eq!(
            prompt.text,
            "look at this\n[lib.rs](file:///w/lib.rs)\n<context ref=\"file:///w/main.rs\">\nfn main() {}\n</context>"
        );
        let [blob, image] = &prompt.contents[..] else { panic!("{prompt:?}") };
        assert_eq!((blob.name.as_deref(), &blob.content[..]), (Some("a.bin"), &[0, 1][..]));
        assert_eq!((image.media_type.as_deref(), &image.content[..]), (Some("image/png"), &b"hi"[..]));
    }

    #[test]
    fn what_cannot_be_taken_along_is_refused() {
        let code = |blocks: Vec<ContentBlock>| i32::from(EditorPrompt::read(blocks).unwrap_err().code);
        let audio = ContentBlock::Audio(AudioContent::new("aGk=", "audio/wav"));
        assert_eq!(code(vec![ContentBlock::from("hear"), audio]), -32602);
        let broken = ContentBlock::Image(ImageContent::new("not base64!", "image/png"));
        assert_eq!(code(vec![broken]), -32602);
        assert_eq!(code(vec![]), -32602);
        assert_eq!(code(vec![ContentBlock::from(" \n")]), -32602);
    }
}
