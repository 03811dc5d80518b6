//! Attachments: content beside the journal, known by its hash, and what a glance at it tells of its type. Pure; the files
//! themselves are the store's.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of content that [`sniff`] looks at.
pub const SNIFF_BYTES: usize = 4 * 1024;

/// The BLAKE3 hash of an attachment's content. The same content has the same id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentId([u8; 32]);

/// The fault of a text that is no attachment's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 lower-case hexadecimal digits")]
pub struct AttachmentIdError;

impl AttachmentId {
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The id of this content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }
}

impl fmt::Display for AttachmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for AttachmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AttachmentId {
    type Err = AttachmentIdError;

    fn from_str(text: &str) -> Result<Self, AttachmentIdError> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(AttachmentIdError);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(AttachmentIdError);
            };
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for AttachmentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AttachmentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for AttachmentId {
    fn schema_name() -> Cow<'static, str> {
        "AttachmentId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "The BLAKE3 hash of an attachment's content."
        })
    }
}

/// What content is, by its first bytes. Names and headers are not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentType {
    pub media_type: &'static str,
    /// A raster image of a kind that browsers and models take.
    pub image: bool,
}

/// Content of no known kind.
const BINARY: ContentType = ContentType { media_type: "application/octet-stream", image: false };
const TEXT: ContentType = ContentType { media_type: "text/plain", image: false };
const PDF: ContentType = ContentType { media_type: "application/pdf", image: false };

/// The type of content, by its first [`SNIFF_BYTES`] bytes. Nothing is decoded or unpacked.
#[must_use]
pub fn sniff(head: &[u8]) -> ContentType {
    let head = &head[..head.len().min(SNIFF_BYTES)];
    let image = |media_type| ContentType { media_type, image: true };
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        image("image/png")
    } else if head.starts_with(b"\xff\xd8\xff") {
        image("image/jpeg")
    } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        image("image/gif")
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP".as_slice()) {
        image("image/webp")
    } else if head.starts_with(b"%PDF-") {
        PDF
    } else if is_text(head) {
        TEXT
    } else {
        BINARY
    }
}

/// Whether the bytes are text, but for a character that the end of the head may have cut.
fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && head.len() == SNIFF_BYTES,
    };
    whole && head.iter().all(|byte| *byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
}

/// Whether a media type or the ending of a file's name claims an image.
#[must_use]
pub fn claims_image(media_type: Option<&str>, name: Option<&str>) -> bool {
    let typed = media_type.is_some_and(|claim| claim.trim().to_ascii_lowercase().starts_with("image/"));
    let ending = name.and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_ascii_lowercase());
    let named = ending.is_some_and(|ending| {
        matches!(
            ending.as_str(),
            "png" | "apng" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "bmp" | "tif" | "tiff"
        )
    });
    // A drawing in SVG is text with scripts in it: it claims to be an image, and is kept as a file.
    let drawing = media_type.is_some_and(|claim| claim.trim().eq_ignore_ascii_case("image/svg+xml"));
    named || (typed && !drawing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_hash_in_lower_case_and_nothing_else() {
        let id = AttachmentId::of(b"hello");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in [
            "",
            "ab",
            &id.to_string().to_uppercase(),
            &format!("{id}0"),
            &format!("../{}", &id.to_string()[3..]),
        ] {
            assert_eq!(bad.parse::<AttachmentId>(), Err(AttachmentIdError), "{bad}");
        }
    }

    #[test]
    fn the_type_is_in_the_content() {
        let table: [(&[u8], &str, bool); 9] = [
            (b"\x89PNG\r\n\x1a\n\0\0", "image/png", true),
            (b"\xff\xd8\xff\xe0", "image/jpeg", true),
            (b"GIF89a..", "image/gif", true),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", true),
            (b"RIFF\0\0\0\0WAVE", "application/octet-stream", false),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "text/plain", false),
            (b"<!doctype html><script>1</script>", "text/plain", false),
            (b"%PDF-1.7", "application/pdf", false),
            (b"\0\x01", "application/octet-stream", false),
        ];
        for (content, media_type, image) in table {
            assert_eq!(sniff(content), ContentType { media_type, image }, "{content:?}");
        }
        let mut cut = vec![b'a'; SNIFF_BYTES - 1];
        cut.extend("é".bytes());
        assert_eq!(sniff(&cut), TEXT);
        assert_eq!(sniff(b"a\xff"), BINARY);
    }

    #[test]
    fn a_claim_is_in_the_type_or_the_ending() {
        assert!(claims_image(Some("image/png"), None) && claims_image(None, Some("a.JPG")));
        assert!(!claims_image(Some("image/svg+xml"), Some("a.svg")) && !claims_image(None, Some("png")));
        assert!(claims_image(Some("text/html"), Some("x.png")) && !claims_image(None, None));
    }
}
