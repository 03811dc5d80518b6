//! Second names of arguments: the names the earlier design of these tools used. A tool accepts them beside its own
//! names. Both names in one call must have the same value.

use serde_json::{Map, Value, json};

use crate::own_tools::{agent, spawn};
use crate::tool_refusal::Refused;

/// Second name, own name. Every tool that has the own name accepts the second one.
const SHARED: [(&str, &str); 3] =
    [("workspace_id", "workspace"), ("plan_id", "plan"), ("session_id", "session")];

/// Tool, second name, own name.
const OF_TOOLS: [(&str, &str, &str); 5] = [
    (agent::NAME, "to_agent", "to"),
    (agent::NAME, "agent_name", "agent_type"),
    (spawn::NAME, "agent_name", "agent"),
    (spawn::NAME, "agent_type", "agent"),
    (spawn::NAME, "enriched_prompt", "prompt"),
];

/// An object whose fields are arguments.
struct Group {
    tool: &'static str,
    name: &'static str,
    /// Field, own name.
    fields: &'static [(&'static str, &'static str)],
}

const GROUPS: [Group; 2] = [
    Group { tool: agent::NAME, name: "context", fields: &[("session_id", "extension_session_id")] },
    Group {
        tool: spawn::NAME,
        name: "prep_config",
        fields: &[
            ("agent", "agent"),
            ("agent_name", "agent"),
            ("agent_type", "agent"),
            ("prompt", "prompt"),
            ("enriched_prompt", "prompt"),
            ("title", "title"),
            ("phase", "phase"),
            ("plan_id", "plan"),
            ("workspace_id", "workspace"),
        ],
    },
];

fn seconds(tool: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = OF_TOOLS.into_iter().filter(move |(of, _, _)| *of == tool);
    own.map(|(_, second, first)| (second, first)).chain(SHARED)
}

fn groups(tool: &str) -> impl Iterator<Item = &'static Group> {
    GROUPS.iter().filter(move |group| group.tool == tool)
}

/// Adds the second names to a tool's schema.
pub(super) fn declare(tool: &str, schema: &mut Value) {
    let Some(properties) = schema["properties"].as_object_mut() else { return };
    for (second, first) in seconds(tool) {
        if let Some(field) = properties.get(first).cloned() {
            properties.insert(second.to_owned(), second_name(field, first));
        }
    }
    for group in groups(tool) {
        let mut fields = Map::new();
        for (field, first) in group.fields {
            if let Some(of) = properties.get(*first).cloned() {
                fields.insert((*field).to_owned(), second_name(of, first));
            }
        }
        let described = format!("`{}` as an object: its fields are arguments.", group.name);
        let mut object = json!({ "type": "object", "description": described, "additionalProperties": true });
        object["properties"] = Value::Object(fields);
        properties.insert(group.name.to_owned(), object);
    }
}

fn second_name(mut field: Value, first: &str) -> Value {
    field["description"] = format!("Another name of `{first}`.").into();
    field
}

/// The arguments under the tool's own names, and the names of those it does not know.
pub(super) fn resolve(tool: &Value, arguments: Map<String, Value>) -> Result<(Value, Vec<String>), Refused> {
    let known = &tool["inputSchema"]["properties"];
    let name = tool["name"].as_str().unwrap_or_default();
    let mut arguments = arguments;
    let mut ignored = Vec::new();
    for group in groups(name) {
        let Some(value) = arguments.remove(group.name) else { continue };
        let Value::Object(fields) = value else {
            ignored.push(group.name.to_owned());
            continue;
        };
        for (field, value) in fields {
            let said_as = format!("{}.{field}", group.name);
            match group.fields.iter().find(|(inside, _)| *inside == field) {
                Some((_, first)) => put(&mut arguments, first, value, &said_as)?,
                None => ignored.push(said_as),
            }
        }
    }
    for (second, first) in seconds(name) {
        // A tool without the own name does not know the second one either.
        if known.get(first).is_some()
            && let Some(value) = arguments.remove(second)
        {
            put(&mut arguments, first, value, second)?;
        }
    }
    ignored.extend(arguments.keys().filter(|name| known.get(name.as_str()).is_none()).cloned());
    Ok((Value::Object(arguments), ignored))
}

fn put(arguments: &mut Map<String, Value>, first: &str, value: Value, said_as: &str) -> Result<(), Refused> {
    match arguments.get(first) {
        None | Some(Value::Null) => {
            arguments.insert(first.to_owned(), value);
            Ok(())
        }
        Some(held) if *held == value || value.is_null() => Ok(()),
        Some(_) => Err(Refused::new(
            "arguments_conflict",
            format!("`{first}` and `{said_as}` are two names of one argument and have different values"),
            format!("send `{first}` alone"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_tools::TOOLS;

    fn resolved(tool: &str, arguments: Value) -> Result<(Value, Vec<String>), &'static str> {
        let tool = TOOLS.iter().find(|known| known["name"] == tool).unwrap();
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        resolve(tool, arguments).map_err(|refused| refused.code)
    }

    /// FND-M11.
    #[test]
    fn fnd_m11_second_names_become_the_tools_own() {
        for (tool, given, own) in [
            ("memory_agent", json!({ "to_agent": "Coordinator" }), json!({ "to": "Coordinator" })),
            (
                "memory_agent",
                json!({ "context": { "session_id": "s" } }),
                json!({ "extension_session_id": "s" }),
            ),
            (
                "memory_plan",
                json!({ "plan_id": "p", "workspace_id": "/w" }),
                json!({ "plan": "p", "workspace": "/w" }),
            ),
            (
                "memory_spawn_agent",
                json!({ "agent_name": "E", "enriched_prompt": "x" }),
                json!({ "agent": "E", "prompt": "x" }),
            ),
            (
                "memory_spawn_agent",
                json!({ "prep_config": { "agent_name": "E", "plan_id": "p" }, "prompt": "x" }),
                json!({ "agent": "E", "plan": "p", "prompt": "x" }),
            ),
            ("memory_agent", json!({ "to": "A", "to_agent": "A" }), json!({ "to": "A" })),
            ("memory_agent", json!({ "to": null, "to_agent": "A" }), json!({ "to": "A" })),
        ] {
            assert_eq!(resolved(tool, given.clone()), Ok((own, Vec::new())), "{tool} {given}");
        }
    }

    #[test]
    fn fnd_m11_two_values_for_one_argument_are_refused() {
        for (tool, given) in [
            ("memory_agent", json!({ "to": "A", "to_agent": "B" })),
            ("memory_agent", json!({ "extension_session_id": "a", "context": { "session_id": "b" } })),
            ("memory_spawn_agent", json!({ "agent_name": "A", "agent_type": "B" })),
            ("memory_spawn_agent", json!({ "prompt": "a", "prep_config": { "enriched_prompt": "b" } })),
            ("memory_context", json!({ "plan": "a", "plan_id": "b" })),
        ] {
            assert_eq!(resolved(tool, given.clone()), Err("arguments_conflict"), "{tool} {given}");
        }
    }

    #[test]
    fn names_a_tool_does_not_know_are_listed() {
        let given = json!({ "to_agent": "A", "context": { "mood": 1 }, "colour": 2 });
        let ignored = vec!["context.mood".to_owned(), "colour".to_owned()];
        assert_eq!(resolved("memory_agent", given), Ok((json!({ "to": "A", "colour": 2 }), ignored)));
        let odd = resolved("memory_workspace", json!({ "plan_id": "p" }));
        assert_eq!(odd, Ok((json!({ "plan_id": "p" }), vec!["plan_id".to_owned()])));
        assert_eq!(
            resolved("memory_agent", json!({ "context": "x" })),
            Ok((json!({}), vec!["context".to_owned()]))
        );
    }
}
