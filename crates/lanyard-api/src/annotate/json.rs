//! Places in JSON text. A relay changes as little as it must: it cuts pieces out of the text or puts some in, and all
//! the rest keeps its bytes, its order and all unknown fields.
//!
//! The text was found to be JSON before it gets here; on anything else these answer nothing, and never panic.

use std::ops::Range;

/// A member of an object: where it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key, unescaped.
    pub key: String,
    /// From the key's opening quote to the value's end.
    pub whole: Range<usize>,
    pub value: Range<usize>,
}

/// The members of an object, in their order.
#[must_use]
pub fn members(text: &str) -> Option<Vec<Member>> {
    let member = |place: Option<MemberSpan>| {
        let MemberSpan { key, value } = place?;
        let whole = key.start..value.end;
        Some(Member { key: serde_json::from_str(text.get(key)?).ok()?, whole, value })
    };
    Walk::new(text)?.map(member).collect()
}

/// Where a key, quotes included, and its value stand.
struct MemberSpan {
    key: Range<usize>,
    value: Range<usize>,
}

/// A way through the members of an object, one after the other; nothing in place of one where this is no object.
struct Walk<'a> {
    bytes: &'a [u8],
    /// Where the next key stands; nothing after the last.
    at: Option<usize>,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let at = open(bytes, b'{')?;
        Some(Self { bytes, at: (bytes.get(at) != Some(&b'}')).then_some(at) })
    }

    fn place(&mut self, start: usize) -> Option<MemberSpan> {
        let bytes = self.bytes;
        let key = start..string_end(bytes, start)?;
        let colon = skip_space(bytes, key.end);
        if bytes.get(colon) != Some(&b':') {
            return None;
        }
        let value = skip_space(bytes, colon + 1);
        let value = value..value_end(bytes, value)?;
        let end = skip_space(bytes, value.end);
        match bytes.get(end) {
            Some(b',') => self.at = Some(skip_space(bytes, end + 1)),
            Some(b'}') => {}
            _ => return None,
        }
        Some(MemberSpan { key, value })
    }
}

impl Iterator for Walk<'_> {
    type Item = Option<MemberSpan>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at.take()?;
        Some(self.place(start))
    }
}

/// The elements of an array, in their order.
#[must_use]
pub fn elements(text: &str) -> Option<Vec<Range<usize>>> {
    let bytes = text.as_bytes();
    let mut at = open(bytes, b'[')?;
    let mut elements = Vec::new();
    if bytes.get(at) == Some(&b']') {
        return Some(elements);
    }
    loop {
        let value = at..value_end(bytes, at)?;
        at = skip_space(bytes, value.end);
        elements.push(value);
        match bytes.get(at) {
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b']') => return Some(elements),
            _ => return None,
        }
    }
}

/// The value of one member, as it stands: the first of that name.
#[must_use]
pub fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    for place in Walk::new(text)? {
        let MemberSpan { key: said, value } = place?;
        let said = text.get(said)?;
        let plain = said.strip_prefix('"').and_then(|said| said.strip_suffix('"'));
        let is_it = match plain.filter(|plain| !plain.contains('\\')) {
            Some(plain) => plain == key,
            None => serde_json::from_str::<String>(said).is_ok_and(|said| said == key),
        };
        if is_it {
            return text.get(value);
        }
    }
    None
}

/// The object without the members of this name; everything else keeps its bytes.
#[must_use]
pub fn without(text: &str, key: &str) -> Option<String> {
    let members = members(text)?;
    let mut out = String::with_capacity(text.len());
    let (mut from, mut place) = (0, 0);
    while place < members.len() {
        if members[place].key != key {
            place += 1;
            continue;
        }
        let run = members[place..].iter().take_while(|member| member.key == key).count();
        let (first, last) = (&members[place].whole, &members[place + run - 1].whole);
        // With the comma that follows; the last ones with the comma before them.
        let cut = match (members.get(place + run), place.checked_sub(1)) {
            (Some(next), _) => first.start..next.whole.start,
            (None, Some(before)) => members[before].whole.end..last.end,
            (None, None) => first.start..last.end,
        };
        out.push_str(text.get(from..cut.start)?);
        from = cut.end;
        place += run;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// The text with one place in it replaced.
#[must_use]
pub fn replaced(text: &str, place: Range<usize>, with: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + with.len());
    out.push_str(text.get(..place.start)?);
    out.push_str(with);
    out.push_str(text.get(place.end..)?);
    Some(out)
}

/// The object with a member set, in its place where it has one and in front where it has none.
#[must_use]
pub fn with(text: &str, key: &str, value: &str) -> Option<String> {
    let members = members(text)?;
    if let Some(member) = members.iter().find(|member| member.key == key) {
        return replaced(text, member.value.clone(), value);
    }
    let at = text.find('{')? + 1;
    let comma = if members.is_empty() { "" } else { "," };
    replaced(text, at..at, &format!("{}:{value}{comma}", quoted(key)))
}

/// A text as a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Every string that is a value and not a key, anywhere in the text: its place, quotes included.
#[must_use]
pub fn strings(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut at, mut found) = (0, Vec::new());
    while let Some(quote) = memchr::memchr(b'"', bytes.get(at..).unwrap_or_default()) {
        let start = at + quote;
        let Some(end) = string_end(bytes, start) else { break };
        let next = skip_space(bytes, end);
        if bytes.get(next) != Some(&b':') {
            found.push(start..end);
        }
        at = end;
    }
    found
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// After the opening bracket and the space that follows it.
fn open(bytes: &[u8], bracket: u8) -> Option<usize> {
    let at = skip_space(bytes, 0);
    (bytes.get(at) == Some(&bracket)).then(|| skip_space(bytes, at + 1))
}

fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let mut at = start + 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start)? {
        b'"' => string_end(bytes, start),
        b'{' | b'[' => {
            let (mut depth, mut at) = (0_usize, start);
            loop {
                match bytes.get(at)? {
                    b'"' => {
                        at = string_end(bytes, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => {
            let rest = bytes.get(start..)?;
            let len = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
            Some(start + len.unwrap_or(rest.len())).filter(|end| *end > start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_cut_out_and_all_else_keeps_its_bytes() {
        for (text, left) in [
            (r#"{"_s":"x"}"#, r"{}"),
            (r#"{ "_s" : "x" , "a":1}"#, r#"{ "a":1}"#),
            (r#"{"a":1, "_s":"x", "b" : [1, {"_s":2}]}"#, r#"{"a":1, "b" : [1, {"_s":2}]}"#),
            (r#"{"a":1 , "_s":"x" }"#, r#"{"a":1 }"#),
            (r#"{"\u005fs":"x","a":"}\"{"}"#, r#"{"a":"}\"{"}"#),
            (r#"{"a":1,"_s":1,"_s":2}"#, r#"{"a":1}"#),
            (r#"{"_s":1,"a":1,"_s":2}"#, r#"{"a":1}"#),
            (r#"{"_s":1,"_s":2}"#, r"{}"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(without(text, "_s").as_deref(), Some(left), "{text}");
        }
    }

    #[test]
    fn a_member_is_set_where_it_stands_or_in_front() {
        assert_eq!(with(r#"{"a":1,"b":2}"#, "b", "[]").as_deref(), Some(r#"{"a":1,"b":[]}"#));
        assert_eq!(with(r#"{ "a":1}"#, "b", "[]").as_deref(), Some(r#"{"b":[], "a":1}"#));
        assert_eq!(with("{}", "b", "[]").as_deref(), Some(r#"{"b":[]}"#));
    }

    #[test]
    fn places_are_found_whatever_stands_around_them() {
        let text = r#"{"a":"x,]}","b":[1,"k:",{"c":null}],"d":-1.5e3}"#;
        let keys: Vec<String> = members(text).unwrap().into_iter().map(|member| member.key).collect();
        assert_eq!(keys, ["a", "b", "d"]);
        assert_eq!(member(text, "b"), Some(r#"[1,"k:",{"c":null}]"#));
        assert_eq!(member(text, "d"), Some("-1.5e3"));
        assert_eq!(member(text, "c"), None, "deeper is another object");
        assert_eq!(member(r#"{"\u0061":1,"a":2}"#, "a"), Some("1"), "the first, however it is written");
        assert_eq!(member(r#"{"a\"":1}"#, "a\""), Some("1"));
        let list = elements(r#"[ 1, "a" ,{"b":[]},[] ]"#).unwrap();
        assert_eq!(list.len(), 4);
        let found: Vec<&str> = strings(text).into_iter().map(|place| &text[place]).collect();
        assert_eq!(found, [r#""x,]}""#, r#""k:""#]);
        assert!(elements("[]").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_json_is_nothing_and_no_panic() {
        for text in
            ["", "{", "[", r#"{"a"#, r#"{"a":"#, r#"{"a":}"#, r#"{"a":"\"#, "nul", "[1,", r#"{"a" 1}"#]
        {
            assert_eq!(members(text), None, "{text}");
            assert_eq!(without(text, "a"), None, "{text}");
            let _ = strings(text);
        }
        assert_eq!(elements("[1,"), None);
    }
}
