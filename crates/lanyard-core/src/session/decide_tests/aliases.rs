//! Foreign ids by which a session can be found.

use super::*;

#[test]
fn a_session_can_be_found_under_another_name() {
    check(
        given([]),
        add_alias("ses_0f3a"),
        expect![[r#"
            session.alias_added alias=ses_0f3a
            beginning
        "#]],
    );
}

/// S0-B09: an alias is one opaque text.
#[test]
fn an_alias_may_look_like_several() {
    check(
        given([]),
        add_alias("ws::plan::session"),
        expect![[r#"
            session.alias_added alias=ws::plan::session
            beginning
        "#]],
    );
}

#[test]
fn the_same_alias_again_changes_nothing() {
    check(
        given([]).after(add_alias("a")),
        add_alias("a"),
        expect![[r#"
            beginning
        "#]],
    );
}

#[test]
fn an_alias_is_one_line() {
    check(
        given([]),
        add_alias("a\nb"),
        expect![[r#"
            refused field_bad_text: alias holds a control character; remove control characters such as NUL, escape or line breaks
            beginning
        "#]],
    );
}

#[test]
fn an_alias_has_text() {
    check(
        given([]),
        add_alias(""),
        expect![[r#"
            refused field_empty: alias is empty; give at least one visible character
            beginning
        "#]],
    );
}

#[test]
fn a_thousand_characters_are_a_name_whatever_their_bytes() {
    assert!(given([]).put(&add_alias(&"🎈".repeat(NAME_CHARS_MAX))).refusal.is_none());
    check(
        given([]),
        add_alias(&"x".repeat(NAME_CHARS_MAX + 1)),
        expect![[r#"
            refused field_too_long: alias is longer than 1000 characters; shorten it; put long content into a file the agent can read
            beginning
        "#]],
    );
}

#[test]
fn sixteen_aliases_are_the_most() {
    let given = given([]).after_each((0..16).map(|number| add_alias(&number.to_string())));
    assert_eq!(given.session.aliases.len(), 16);
    check(
        given,
        add_alias("one more"),
        expect![[r#"
            refused field_too_many: aliases has more than 16 entries; send fewer
            beginning
        "#]],
    );
}

/// An old name may turn up long after the session's end.
#[test]
fn an_ended_session_can_get_an_alias() {
    check(
        in_state(StateName::Completed),
        add_alias("old"),
        expect![[r#"
            session.alias_added alias=old
            completed
        "#]],
    );
}
