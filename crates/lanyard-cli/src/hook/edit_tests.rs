//! In and out again: what was there before stays, byte for byte.

use expect_test::expect;

use super::*;

fn entries() -> Vec<HookEntry> {
    ["PreToolUse", "PostToolUse"]
        .map(|event| HookEntry {
            event,
            hook: json!({ "type": "command", "command": "lanyard hook claude" }),
        })
        .to_vec()
}

fn ours(command: &str) -> bool {
    command.ends_with("lanyard hook claude")
}

fn round(text: &str) -> String {
    let with = add(text, &entries()).unwrap();
    let found = commands(&with).unwrap();
    for entry in entries() {
        assert!(found.contains(&(entry.event.to_owned(), "lanyard hook claude".to_owned())), "{with}");
    }
    with
}

#[test]
fn a_blank_file_becomes_an_object() {
    expect![[r#"
        {
          "hooks": {
            "PreToolUse": [
              {
                "hooks": [
                  {
                    "type": "command",
                    "command": "lanyard hook claude"
                  }
                ]
              }
            ],
            "PostToolUse": [
              {
                "hooks": [
                  {
                    "type": "command",
                    "command": "lanyard hook claude"
                  }
                ]
              }
            ]
          }
        }
    "#]]
    .assert_eq(&round("\n"));
}

#[test]
fn what_others_wrote_stays_as_they_wrote_it() {
    let text = "{\n\t\"model\" :  \"opus\",\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t{ \"matcher\": \"Bash\", \"hooks\": [ { \"command\": \"x\" } ] }\n\t\t]\n\t},\n\t\"n\": 1.0e3\n}";
    let with = round(text);
    expect![[r#"
        {
        	"model" :  "opus",
        	"hooks": {
        		"PreToolUse": [
        			{ "matcher": "Bash", "hooks": [ { "command": "x" } ] },
        			{
        				"hooks": [
        					{
        						"type": "command",
        						"command": "lanyard hook claude"
        					}
        				]
        			}
        		],
        		"PostToolUse": [
        			{
        				"hooks": [
        					{
        						"type": "command",
        						"command": "lanyard hook claude"
        					}
        				]
        			}
        		]
        	},
        	"n": 1.0e3
        }"#]]
    .assert_eq(&with);
    assert_eq!(remove(&with, &ours).unwrap(), text);
}

#[test]
fn a_file_on_one_line_stays_on_one_line() {
    let text = r#"{"a": [1, {"b": "}\"]"}]}"#;
    let with = round(text);
    assert!(!with.contains('\n'), "{with}");
    assert_eq!(remove(&with, &ours).unwrap(), text);
    let empty = round(r#"{"hooks":{},"a":[]}"#);
    expect![[r#"{"a":[]}"#]].assert_eq(&remove(&empty, &ours).unwrap());
}

#[test]
fn only_ours_goes_even_where_it_was_moved() {
    let text = r#"{"hooks":{"PreToolUse":[{"hooks":[{"command":"a"},{"command":"/b/lanyard hook claude"},{"command":"c"}]}],"Stop":[{"hooks":[{"command":"lanyard hook claude"}]},{"hooks":[{"command":"d"}]}]}}"#;
    expect![[r#"{"hooks":{"PreToolUse":[{"hooks":[{"command":"a"},{"command":"c"}]}],"Stop":[{"hooks":[{"command":"d"}]}]}}"#]]
        .assert_eq(&remove(text, &ours).unwrap());
    let foreign = r#"{"hooks": {"Stop": [{"hooks": [{"command": "d"}]}, 7, {"hooks": 1}], "X": 2}}"#;
    assert_eq!(remove(foreign, &ours).unwrap(), foreign);
}

#[test]
fn what_is_not_understood_is_refused() {
    let refused = |text: &str| add(text, &entries()).unwrap_err().to_string();
    assert!(refused("{\"a\": 1 \"b\": 2}").starts_with("it is not JSON: "));
    assert!(refused("{a: 1}").starts_with("it is not JSON: "));
    assert_eq!(refused("[]"), "the file is not an object");
    assert_eq!(refused(r#"{"hooks": []}"#), "`hooks` is not an object");
    assert_eq!(refused(r#"{"hooks": {"PreToolUse": {}}}"#), "PreToolUse is not a list");
}

#[test]
fn comments_and_trailing_commas_stay() {
    let text = "{\n  // The house's model.\n  \"model\": \"opus\", /* dear */\n  \"hooks\": {\n    // Ours come last.\n    \"Stop\": [],\n  },\n}\n";
    let with = round(text);
    assert!(with.contains("// The house's model.\n") && with.contains("/* dear */"), "{with}");
    assert_eq!(remove(&with, &ours).unwrap(), text);
}

/// Random files, laid out at random: taking out what was put in gives the file back.
#[test]
fn every_file_comes_back_as_it_was() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let value = json!({ "a": random.u8(..), "nested": { "x": [1, 2, { "y": "\"[{" }], "é": null } });
        let text = match random.u8(..3) {
            0 => value.to_string() + ["", "\n", "\r\n"][random.usize(..3)],
            1 => pretty(&value, "    ") + "\n",
            _ => format!("\n  {}\n\n", pretty(&value, "\t")),
        };
        let with = round(&text);
        assert_eq!(remove(&with, &ours).unwrap(), text);
        assert!(serde_json::from_str::<Value>(&with).is_ok());
    }
}

fn pretty(value: &Value, unit: &str) -> String {
    use serde::Serialize;
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter)).unwrap();
    String::from_utf8(bytes).unwrap()
}
