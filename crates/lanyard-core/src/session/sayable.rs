//! Whether a message may be sent: what it says and shows, and its bounds.

use crate::session::part::{PARTS_BYTES_MAX, PARTS_MAX, PromptPart};
use crate::session::refusal::Refusal;
use crate::text::{BODY_BYTES_MAX, NAME_CHARS_MAX};

/// Characters of a link.
const LINK_CHARS_MAX: usize = 4_000;
/// Characters of a part's name.
const PART_NAME_CHARS_MAX: usize = 200;

/// Whether a message may be sent: it says or shows something, within its bounds.
pub(super) fn sayable(prompt: &str, parts: &[PromptPart]) -> Result<(), Refusal> {
    if prompt.len() > BODY_BYTES_MAX {
        return Err(Refusal::TooLong { field: "prompt", max: BODY_BYTES_MAX, unit: "bytes" });
    }
    if parts.is_empty() && prompt.trim().is_empty() {
        return Err(Refusal::Empty { field: "prompt" });
    }
    if parts.len() > PARTS_MAX {
        return Err(Refusal::TooMany { field: "parts", max: PARTS_MAX });
    }
    let bytes =
        parts.iter().filter_map(PromptPart::attached).fold(0, |sum: u64, one| sum.saturating_add(one.bytes));
    if bytes > PARTS_BYTES_MAX {
        let max = usize::try_from(PARTS_BYTES_MAX).unwrap_or(usize::MAX);
        return Err(Refusal::TooLong { field: "parts", max, unit: "bytes" });
    }
    parts.iter().try_for_each(well_named)
}

fn well_named(part: &PromptPart) -> Result<(), Refusal> {
    let (name, uri) = match part {
        PromptPart::Image(attached) | PromptPart::File(attached) => (attached.name.as_deref(), None),
        PromptPart::Link { uri, name } => (name.as_deref(), Some(uri.as_str())),
    };
    let check = |field: &'static str, text: &str, max: usize| {
        if text.trim().is_empty() {
            Err(Refusal::Empty { field })
        } else if text.chars().count() > max {
            Err(Refusal::TooLong { field, max, unit: "characters" })
        } else if text.chars().any(char::is_control) {
            Err(Refusal::BadText { field })
        } else {
            Ok(())
        }
    };
    name.map_or(Ok(()), |name| check("name", name, PART_NAME_CHARS_MAX.min(NAME_CHARS_MAX)))?;
    uri.map_or(Ok(()), |uri| check("uri", uri, LINK_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attachment::AttachmentId;
    use crate::session::part::AttachedContent;

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
    fn a_message_says_or_shows_something_within_bounds() {
        let link = |uri: &str| PromptPart::Link { uri: uri.to_owned(), name: None };
        assert_eq!(sayable("", &[]), Err(Refusal::Empty { field: "prompt" }));
        assert_eq!(sayable("", &[image(None, 1)]), Ok(()));
        assert!(sayable("x", &vec![image(None, 1); PARTS_MAX + 1]).is_err());
        assert!(sayable("x", &[image(None, PARTS_BYTES_MAX), image(None, 1)]).is_err());
        assert!(sayable("x", &[image(Some("a\nb"), 1)]).is_err());
        assert!(sayable("x", &[link("")]).is_err() && sayable("x", &[link("file:///a")]).is_ok());
    }
}
