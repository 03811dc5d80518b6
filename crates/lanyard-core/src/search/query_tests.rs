//! Queries and what is understood, as a table; and that no text is too odd for them.

use proptest::prelude::*;

use super::*;
use crate::search::{indexed_words, relevance, snippet};

const NOW: Timestamp = Timestamp::from_millis(1_794_729_600_000);

/// A query in few letters: `!` excluded, `*` prefix, `+` between the words of a phrase.
fn shown(text: &str) -> String {
    let query = match SearchQuery::parse(text, NOW) {
        Ok(query) => query,
        Err(refusal) => return refusal.code().to_owned(),
    };
    let terms = query.terms.iter().map(|term| {
        let pieces = term.pieces.iter().map(|piece| match piece {
            SearchPiece::Words(words) => words.join("+"),
            SearchPiece::Unspaced(chars) => format!("[{}]", chars.iter().collect::<String>()),
        });
        let pieces = pieces.collect::<Vec<_>>().join("&");
        format!("{}{pieces}{}", if term.not { "!" } else { "" }, if term.prefix { "*" } else { "" })
    });
    let SearchFilters { agent, folder, session, kind, since } = query.filters;
    let filters = [
        agent.map(|agent| format!("agent={agent}")),
        folder.map(|folder| format!("in={folder}")),
        session.map(|session| format!("session={session}")),
        kind.map(|kind| format!("kind={kind}")),
        since.map(|since| format!("since={since}")),
    ];
    terms.chain(filters.into_iter().flatten()).collect::<Vec<_>>().join(" ")
}

#[test]
fn queries_and_what_is_understood() {
    for (text, understood) in [
        ("login fails", "login fails"),
        ("  Login\tFAILS ", "login fails"),
        ("\"login fails\" now", "login+fails now"),
        ("\"never closed", "never+closed"),
        ("parse_config fooBar", "parse+config foobar"),
        ("src/lib.rs:12", "src+lib+rs+12"),
        ("conf* -test", "conf* !test"),
        ("\"open fil\"*", "open+fil*"),
        ("-\"two words\" one", "!two+words one"),
        ("--json out", "json out"),
        ("a - b -", "a b"),
        ("Größe", "große"),
        ("日本語 設定config", "[日本語] [設定]&config"),
        ("don\"t", "don+t"),
        ("a AND b OR NOT c NEAR(d)", "a and b or not c near+d"),
        ("x ^y {z} col:val (", "x y z col+val"),
        ("std::fmt in::x session:", "std+fmt in+x session"),
        ("fix agent:claude in:/srv/shop", "fix agent=claude in=/srv/shop"),
        ("fix in:\"/srv/my shop\" Kind:TOOL", "fix in=/srv/my shop kind=tool"),
        ("fix session:fix-login since:2h", "fix session=fix-login since=2026-11-15T06:00:00.000Z"),
        ("fix since:2026-11-14", "fix since=2026-11-14T00:00:00.000Z"),
        ("-agent:claude fix", "!agent+claude fix"),
        ("\"agent:claude\"", "agent+claude"),
        ("", "search_empty"),
        (" \n ", "search_empty"),
        ("!? -- \u{1f388}", "search_empty"),
        ("agent:claude", "search_empty"),
        ("-no -nor", "search_only_excluded"),
        ("a*", "search_prefix_short"),
        ("x kind:thought", "search_filter_bad"),
        ("x since:yesterday", "search_filter_bad"),
        ("x in:\"\"", "search_filter_bad"),
        ("x agent:a agent:b", "search_filter_twice"),
        ("a b c d e f g h i j k l m n o p", "a b c d e f g h i j k l m n o p"),
        ("a b c d e f g h i j k l m n o p q", "search_too_many_words"),
    ] {
        assert_eq!(shown(text), understood, "{text:?}");
    }
    assert_eq!(shown(&"x".repeat(QUERY_CHARS_MAX + 1)), "search_too_long");
}

proptest! {
    /// Every text is understood or refused, and what is understood can be marked in every text.
    #[test]
    fn no_query_and_no_text_panics(query in "\\PC{0,60}|[a-c\"*: -]{0,20}", text in "\\PC{0,200}") {
        let _ = indexed_words(&text);
        if let Ok(query) = SearchQuery::parse(&query, NOW) {
            prop_assert!(query.wanted().count() > 0);
            prop_assert!(query.terms.iter().all(|term| !term.pieces.is_empty()));
            let _ = relevance(&text, &query);
            let snippet = snippet(&text, &query);
            let chars = snippet.text.chars().count() as u64;
            prop_assert!(snippet.marks.iter().all(|[from, to]| from < to && u64::from(*to) <= chars));
        }
    }
}
