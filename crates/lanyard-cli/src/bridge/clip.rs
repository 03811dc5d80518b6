//! Bounds on what one line may carry.

use serde_json::Value;

/// The longest text of one line; longer text is said in several lines.
pub(super) const TEXT_BYTES_MAX: usize = 64 * 1024;
/// The longest string inside a tool's arguments or result. OpenCode itself cuts results well below this.
pub(super) const STRING_BYTES_MAX: usize = 256 * 1024;

/// The longest beginning of `text` that is at most `bytes` long and ends between characters.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Cuts every string that is too long, and says so in its place.
pub(super) fn clip(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > STRING_BYTES_MAX => {
            let kept = head(text, STRING_BYTES_MAX);
            let left = text.len() - kept.len();
            *text = format!("{kept}\n[{left} bytes left out]");
        }
        Value::Array(items) => items.iter_mut().for_each(clip),
        Value::Object(fields) => fields.values_mut().for_each(clip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cut_never_falls_into_a_character() {
        assert_eq!(head("größe", 3), "gr");
        assert_eq!(head("größe", 4), "grö");
        assert_eq!(head("größe", 99), "größe");
    }

    #[test]
    fn long_strings_are_cut_wherever_they_are() {
        let mut value = json!({"a": ["x".repeat(STRING_BYTES_MAX + 5), 1, "short"]});
        clip(&mut value);
        let text = value["a"][0].as_str().unwrap();
        assert!(text.ends_with("x\n[5 bytes left out]"), "{}", &text[text.len() - 40..]);
        assert_eq!(value["a"][2], "short");
    }
}
