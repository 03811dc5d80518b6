//! Redaction: real key shapes are found, and ordinary text stays as it is.

use serde_json::json;

use super::*;

fn redactor() -> Redactor {
    let variables = [
        ("OPENAI_API_KEY", "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12"),
        ("DB_PASSWORD", "hunter2 \"quoted\""),
        ("VAULT", "correct horse battery"),
        ("SSL_KEY", "/etc/ssl/private/key.pem"),
        ("PIN_TOKEN", "12345678"),
        ("SHORT_KEY", "abc"),
        ("HOME", "/home/sam/projects"),
        ("EDITOR", "a-very-long-editor-name"),
    ];
    let wanted = Wanted {
        variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        names: vec!["VAULT".to_owned()],
        prefixes: vec!["corp_".to_owned()],
        own_only: false,
    };
    Redactor::new(&wanted).unwrap()
}

fn own(prefix: &str) -> String {
    format!("{prefix}{}", "Ab1_-cD2".repeat(8))
}

/// FND-K8: real shapes of secrets, each with what stands in its place.
#[test]
fn fnd_k8_secrets_are_replaced_by_a_marker() {
    let redactor = redactor();
    let cases = [
        (own("lys_"), "lanyard-token"),
        (own("lyr_"), "lanyard-token"),
        (own("lyd_"), "lanyard-token"),
        (own("lyl_"), "lanyard-token"),
        (format!("ghp_{}", "a1B2".repeat(9)), "github-token"),
        (format!("gho_{}", "a1B2".repeat(9)), "github-token"),
        (format!("github_pat_11ABCDEFG0{}_{}", "a1B2".repeat(3), "x9".repeat(20)), "github-token"),
        (format!("sk-ant-api03-{}", "aB3-_".repeat(18)), "api-key"),
        (format!("sk-or-v1-{}", "0a1b".repeat(16)), "api-key"),
        (format!("sk-{}", "aB3d".repeat(12)), "api-key"),
        ("xoxb-123456789012-1234567890123-AbCdEfGhIjKl".to_owned(), "slack-token"),
        ("AKIAIOSFODNN7EXAMPLE".to_owned(), "aws-key"),
        ("AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY".to_owned(), "google-key"),
        ("glpat-aB3dE5gH7jK9mN1pQ3sT".to_owned(), "gitlab-token"),
        (format!("sk_live_{}", "aB3d".repeat(6)), "stripe-key"),
        (format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{}", "a1_-".repeat(10)), "jwt"),
        ("sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12".to_owned(), "env OPENAI_API_KEY"),
        ("hunter2 \"quoted\"".to_owned(), "env DB_PASSWORD"),
        ("correct horse battery".to_owned(), "env VAULT"),
        ("corp_a1b2c3d4".to_owned(), "custom"),
    ];
    for (secret, label) in cases {
        for (before, after) in [("", ""), ("key=", " end"), ("Bearer ", "\n"), ("\n", "\""), ("ü", "ü")] {
            let text = format!("{before}{secret}{after}");
            let expected = format!("{before}[redacted:{label}]{after}");
            assert_eq!(redactor.redacted(&text, RedactionScope::All), Some((expected, 1)), "{text}");
            let written = serde_json::to_string(&json!({ "text": text })).unwrap();
            assert!(redactor.suspects(written.as_bytes()), "{written}");
        }
    }
}

/// FND-K8.
#[test]
fn fnd_k8_a_private_key_goes_whole_also_where_it_was_cut_off() {
    let redactor = redactor();
    let key =
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\nAAAA\n-----END OPENSSH PRIVATE KEY-----";
    let clean = |text: &str| redactor.redacted(text, RedactionScope::All).map(|(text, _)| text);
    assert_eq!(clean(&format!("a {key} b")).unwrap(), "a [redacted:private-key] b");
    assert_eq!(clean(&key[..60]).unwrap(), "[redacted:private-key]");
    assert_eq!(clean("-----BEGIN PRIVATE KEY-----").unwrap(), "[redacted:private-key]");
    assert_eq!(clean("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"), None);
    assert_eq!(clean("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"), None);
}

/// FND-K8: text that must not be touched.
#[test]
fn fnd_k8_ordinary_text_stays_as_it_is() {
    let redactor = redactor();
    let image = format!("iVBORw0KGgo{}AAAA/+9j==", "aB3/+Zx9".repeat(200));
    let cases = [
        "pip install sk-learn && import sk-image",
        "class=\"sk-estimator-doc-link-fitted sk-container-id-1\"",
        "task-0123456789abcdef0123456789abcdef0123",
        "risk-assessment-2024-with-a-long-tail-of-words",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
        "sess_01m7n5djg0fayvh8t5cxyjkdnf run_01m7n5djg0fayvh8t5cxyjkdnf",
        "export AKIA=1; AKIAlowercase; AKIASHORT1; XAKIAIOSFODNN7EXAMPLEX",
        "lys_ tokens, lyd_short, ghp_ and github_pat_ are prefixes; sk- too",
        "eyJhbGciOiJIUzI1NiJ9 alone, eyJ.eyJ.x",
        "/etc/ssl/private/key.pem 12345678 abc a-very-long-editor-name /home/sam/projects",
        "corp_short xcorp_a1b2c3d4e5",
        "AIzaTooShort",
        "sk-abcdefghijklmnopqrstuvwxyzabcdefghijklmnop",
        &image,
    ];
    for text in cases {
        assert_eq!(redactor.redacted(text, RedactionScope::All), None, "{text}");
    }
}

/// FND-K8: what a person said reaches the agent as it was said, but for tokens of Lanyard's own.
#[test]
fn fnd_k8_words_of_people_lose_only_lanyards_tokens() {
    let redactor = redactor();
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let text = format!("use {key} and {} here", own("lys_"));
    let (clean, count) = redactor.redacted(&text, RedactionScope::OwnTokens).unwrap();
    assert_eq!((clean, count), (format!("use {key} and [redacted:lanyard-token] here"), 1));
    assert_eq!(redactor.redacted(&key, RedactionScope::OwnTokens), None);
    let only = Redactor::new(&Wanted { own_only: true, ..Wanted::default() }).unwrap();
    assert_eq!(only.redacted(&key, RedactionScope::All), None);
    assert!(only.redacted(&text, RedactionScope::All).is_some());
}

/// FND-K8.
#[test]
fn fnd_k8_secrets_are_found_anywhere_in_a_value_and_counted() {
    let redactor = redactor();
    let token = own("lys_");
    let mut value =
        json!({ "env": [{ "LANYARD_TOKEN": token }, 1, null], "text": format!("{token} {token}") });
    assert_eq!(redactor.redact(&mut value, RedactionScope::All), 3);
    let gone = "[redacted:lanyard-token]";
    assert_eq!(
        value,
        json!({ "env": [{ "LANYARD_TOKEN": gone }, 1, null], "text": format!("{gone} {gone}") })
    );
    assert_eq!(redactor.redact(&mut value, RedactionScope::All), 0, "a marker is no secret");
}

#[test]
fn names_say_what_is_secret() {
    for name in ["OPENAI_API_KEY", "gh_token", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "TOKEN"] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in ["HOME", "PATH", "KEYBOARD", "TOKENIZERS_PARALLELISM", "MONKEY"] {
        assert!(!is_secret_name(name), "{name}");
    }
}

/// FND-K8: a preview shows no half of a token.
#[test]
fn fnd_k8_what_may_be_the_beginning_of_a_secret_is_not_shown_yet() {
    let redactor = redactor();
    let shown = |text: &str| redactor.shown(text);
    assert_eq!(shown("the token is lys_abc"), "the token is ".len());
    assert_eq!(shown("the token is lys_"), "the token is ".len());
    assert_eq!(shown("a task-12 b"), "a task-12 b".len());
    assert_eq!(shown("plain words"), "plain words".len());
    // In the middle of a prefix, and of a value that is known.
    for (safe, rest) in [
        ("the token is ", "ly"),
        ("the token is ", "l"),
        ("key=", "gh"),
        ("PASSWORD=", "hunter2 \"quo"),
        ("x", "hunter2"),
        ("a jwt: ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi"),
        ("pem:\n", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow"),
        ("pem:\n", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA"),
        ("pem:\n", "-----BEG"),
    ] {
        assert_eq!(shown(&format!("{safe}{rest}")), safe.len(), "{safe}{rest}");
    }
    for text in ["all", "a task", "Finally", "-----BEGIN CERTIFICATE-----\nMIIE", "ask", "really?", "risk-"] {
        assert_eq!(shown(text), text.len(), "{text}");
    }
}

/// FND-K8: whatever the place at which a text is cut, what was shown before and after holds no secret.
#[test]
fn fnd_k8_a_secret_in_two_pieces_is_never_shown_in_part() {
    let redactor = redactor();
    let jwt = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{}", "a1_-".repeat(10));
    let secrets =
        [own("lys_"), format!("ghp_{}", "a1B2".repeat(9)), "hunter2 \"quoted\"".to_owned(), jwt.clone()];
    for secret in secrets {
        let text = format!("first {secret} last");
        let whole = redactor.redacted(&text, RedactionScope::All).unwrap().0;
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let safe = redactor.shown(&text[..cut]);
            let clean = |part: &str| {
                redactor.redacted(part, RedactionScope::All).map_or(part.to_owned(), |(clean, _)| clean)
            };
            assert_eq!(clean(&text[..safe]) + &clean(&text[safe..]), whole, "cut at {cut}");
        }
    }
}
