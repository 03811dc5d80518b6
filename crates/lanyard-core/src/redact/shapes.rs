//! Forms of keys that are public: how each begins, and how far it goes.

/// One form of key.
#[derive(Debug)]
pub(super) struct Shape {
    /// The name in the marker.
    pub(super) label: &'static str,
    pub(super) prefixes: &'static [&'static str],
    /// A token of Lanyard's own.
    pub(super) is_own: bool,
    /// The end of the secret, given the text and both ends of its prefix; `None` when there is no secret.
    pub(super) ends: fn(&str, usize, usize) -> Option<usize>,
    /// Farthest end of the secret in an unfinished text, given the end of its prefix.
    pub(super) reach: fn(&str, usize) -> usize,
}

pub(super) static SHAPES: [Shape; 10] = [
    Shape {
        label: "lanyard-token",
        prefixes: &["lys_", "lyr_", "lyd_", "lyl_"],
        is_own: true,
        ends: own,
        reach: word,
    },
    Shape {
        label: "github-token",
        prefixes: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        is_own: false,
        ends: github,
        reach: word,
    },
    Shape { label: "api-key", prefixes: &["sk-"], is_own: false, ends: api_key, reach: word },
    Shape {
        label: "stripe-key",
        prefixes: &["sk_live_", "rk_live_", "sk_test_", "rk_test_"],
        is_own: false,
        ends: |text, _, from| at_least(text, from, 20, |byte| byte.is_ascii_alphanumeric()),
        reach: word,
    },
    Shape {
        label: "slack-token",
        prefixes: &["xoxb-", "xoxp-", "xoxa-", "xoxs-", "xoxr-"],
        is_own: false,
        ends: |text, _, from| mixed(text, from, 16),
        reach: word,
    },
    Shape { label: "aws-key", prefixes: &["AKIA", "ASIA"], is_own: false, ends: aws, reach: word },
    Shape { label: "google-key", prefixes: &["AIza"], is_own: false, ends: google, reach: word },
    Shape {
        label: "gitlab-token",
        prefixes: &["glpat-"],
        is_own: false,
        ends: |text, _, from| at_least(text, from, 20, is_word),
        reach: word,
    },
    Shape {
        label: "private-key",
        prefixes: &["-----BEGIN "],
        is_own: false,
        ends: private_key,
        reach: key_text,
    },
    Shape { label: "jwt", prefixes: &["eyJ"], is_own: false, ends: jwt, reach: dotted },
];

/// Characters a token of Lanyard's own has at least behind its prefix: 32 random bytes.
const OWN_CHARS_MIN: usize = 40;
/// The longest line between the marks of a key, as in `ENCRYPTED PRIVATE KEY`.
const KEY_NAME_MAX: usize = 40;

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The end of the run of such bytes. They are ASCII, so it is the end of a character too.
pub(super) fn run(text: &str, from: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = &text.as_bytes()[from..];
    from + rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len())
}

fn word(text: &str, from: usize) -> usize {
    run(text, from, is_word)
}

fn dotted(text: &str, from: usize) -> usize {
    run(text, from, |byte| is_word(byte) || byte == b'.')
}

/// A private key goes on to its end mark. Another block, such as a certificate, is none.
fn key_text(text: &str, from: usize) -> usize {
    let name = text[from..].find("-----").map_or(&text[from..], |end| &text[from..from + end]);
    let is_key =
        name.len() <= KEY_NAME_MAX && (from + name.len() == text.len() || name.ends_with("PRIVATE KEY"));
    let ended = text[from..].find("-----END ").is_some_and(|at| text[from + at + 9..].contains("-----"));
    if is_key && !ended { text.len() } else { from }
}

fn at_least(text: &str, from: usize, min: usize, fits: impl Fn(u8) -> bool) -> Option<usize> {
    let end = run(text, from, fits);
    (end - from >= min).then_some(end)
}

/// A run that no word is: long, with a digit and a letter.
fn mixed(text: &str, from: usize, min: usize) -> Option<usize> {
    let end = at_least(text, from, min, is_word)?;
    let tail = &text.as_bytes()[from..end];
    let has = |fits: fn(&u8) -> bool| tail.iter().any(fits);
    (has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)).then_some(end)
}

fn own(text: &str, _: usize, from: usize) -> Option<usize> {
    at_least(text, from, OWN_CHARS_MIN, is_word)
}

fn github(text: &str, start: usize, from: usize) -> Option<usize> {
    if text[start..].starts_with("github_pat_") {
        return at_least(text, from, 40, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    }
    at_least(text, from, 36, |byte| byte.is_ascii_alphanumeric())
}

/// Keys of model providers. `sk-` begins many words, so it needs a known second part, or a long run without a dash.
fn api_key(text: &str, _: usize, from: usize) -> Option<usize> {
    let parts = ["ant-", "proj-", "or-", "svcacct-", "admin-", "lf-"];
    if let Some(part) = parts.iter().find(|part| text[from..].starts_with(**part)) {
        return mixed(text, from + part.len(), 20);
    }
    let end = at_least(text, from, 32, |byte| byte.is_ascii_alphanumeric())?;
    let tail = &text.as_bytes()[from..end];
    let is_word_end = text.as_bytes().get(end).is_none_or(|byte| !is_word(*byte));
    (is_word_end && tail.iter().any(u8::is_ascii_digit) && tail.iter().any(u8::is_ascii_alphabetic))
        .then_some(end)
}

fn aws(text: &str, _: usize, from: usize) -> Option<usize> {
    let end = run(text, from, |byte| byte.is_ascii_alphanumeric());
    let tail = &text.as_bytes()[from..end];
    let fits = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (tail.len() == 16 && tail.iter().all(fits) && tail.iter().any(u8::is_ascii_digit)).then_some(end)
}

fn google(text: &str, _: usize, from: usize) -> Option<usize> {
    let end = run(text, from, is_word);
    (end - from == 35).then_some(end)
}

/// To its end mark; a key that was cut off goes to the end of the text.
fn private_key(text: &str, start: usize, from: usize) -> Option<usize> {
    let name = text[from..].find("PRIVATE KEY-----").filter(|at| *at <= KEY_NAME_MAX)?;
    if text[from..from + name].contains(|c: char| !(c.is_ascii_uppercase() || c == ' ')) {
        return None;
    }
    let Some(last) = text[start..].find("-----END ") else { return Some(text.len()) };
    let last = start + last;
    let mark = text[last..].find("PRIVATE KEY-----").map(|at| last + at + "PRIVATE KEY-----".len());
    Some(mark.unwrap_or(text.len()))
}

/// Three parts, of which the first two are JSON objects.
fn jwt(text: &str, _: usize, from: usize) -> Option<usize> {
    let header = at_least(text, from, 10, is_word)?;
    let claims = text[header..].strip_prefix(".eyJ").map(|_| header + 4)?;
    let claims = at_least(text, claims, 10, is_word)?;
    let proof = text[claims..].strip_prefix('.').map(|_| claims + 1)?;
    at_least(text, proof, 20, is_word)
}
