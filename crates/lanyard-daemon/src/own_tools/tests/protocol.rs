//! The server itself: greeting, listing, and calls that make no sense.

use lanyard_core::session::Compliance;
use serde_json::{Value, json};

use super::Room;
use crate::own_tools::{NAME, TOOLS, compliance, handle};

/// S0-34: the tools, each with a flat schema any client takes.
#[tokio::test(flavor = "multi_thread")]
async fn seven_tools_are_listed_with_plain_schemas() {
    let room = Room::new();
    let listed = handle(&room.app.tools, None, "tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "memory_workspace",
            "memory_agent",
            "memory_plan",
            "memory_steps",
            "memory_context",
            "memory_spawn_agent",
            "tasks"
        ]
    );
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(true)));
        // S0: a spawn without an action is a preparation.
        let required = if tool["name"] == "memory_spawn_agent" { Value::Null } else { json!(["action"]) };
        assert_eq!(schema["required"], required, "{}", tool["name"]);
        let action = &schema["properties"]["action"];
        for name in action["enum"].as_array().unwrap() {
            let taught = format!("- `{}`: ", name.as_str().unwrap());
            assert!(action["description"].as_str().unwrap().contains(&taught), "{taught}");
        }
        let text = schema.to_string();
        for bad in ["$ref", "$defs", "oneOf", "anyOf", "\"null\"", "null", "uint"] {
            assert!(!text.contains(bad), "{} has {bad}: {text}", tool["name"]);
        }
        for (name, field) in schema["properties"].as_object().unwrap() {
            assert!(field["description"].is_string(), "{}.{name} is not described", tool["name"]);
            assert!(field["type"].is_string(), "{}.{name} has no plain type: {field}", tool["name"]);
        }
        assert_eq!(schema["properties"]["plan_id"], {
            let mut plan = schema["properties"]["plan"].clone();
            if plan.is_object() {
                plan["description"] = "Another name of `plan`.".into();
            }
            plan
        });
        assert!(tool["annotations"]["readOnlyHint"].is_boolean());
    }
    assert_eq!(TOOLS[0]["annotations"]["readOnlyHint"], true);
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_every_protocol_are_greeted() {
    let room = Room::new();
    let app = &room.app.tools;
    for (asked, answered) in
        [("2025-11-25", "2025-11-25"), ("2024-11-05", "2024-11-05"), ("2031-01-01", "2025-11-25")]
    {
        let hello = handle(app, None, "initialize", json!({ "protocolVersion": asked })).await.unwrap();
        assert_eq!(hello["protocolVersion"], answered);
        assert_eq!(hello["serverInfo"]["name"], NAME);
        assert!(hello["instructions"].as_str().unwrap().contains("memory_agent"));
    }
    let found = handle(app, None, "server/discover", json!({})).await.unwrap();
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["resultType"], "complete");
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    let listed = handle(app, None, "tools/list", meta.clone()).await.unwrap();
    assert_eq!((&listed["resultType"], listed["ttlMs"].is_u64()), (&json!("complete"), true));
    assert_eq!(handle(app, None, "ping", Value::Null).await.unwrap(), json!({}));
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_an_error_and_what_a_tool_refuses_is_a_result() {
    let room = Room::new();
    let code = async |method: &str, params: Value| {
        handle(&room.app.tools, None, method, params).await.unwrap_err().code
    };
    assert_eq!(code("resources/list", json!({})).await, -32601);
    assert_eq!(code("tools/call", json!({})).await, -32602);
    assert_eq!(code("tools/call", json!({ "name": "memory_nothing" })).await, -32602);
    assert_eq!(code("tools/call", json!({ "name": "memory_plan", "arguments": [] })).await, -32602);
    for (tool, arguments, expected) in [
        ("memory_plan", json!({}), "arguments_invalid"),
        ("memory_plan", json!({ "action": "explode" }), "arguments_invalid"),
        ("memory_plan", json!({ "action": "create" }), "field_missing"),
        ("memory_plan", json!({ "action": "create", "title": 7 }), "arguments_invalid"),
        ("memory_plan", json!({ "action": "get", "plan": "nobody" }), "plan_not_found"),
        ("memory_agent", json!({ "action": "complete", "summary": "x" }), "session_required"),
        (
            "memory_agent",
            json!({ "action": "orphan", "session": "x", "choice": "stop" }),
            "session_not_found",
        ),
    ] {
        assert_eq!(room.refused(None, tool, arguments.clone()).await, expected, "{tool} {arguments}");
    }
    let nobody = lanyard_core::SessionId::from_u128(9);
    assert_eq!(room.refused(nobody, "memory_agent", json!({ "action": "ack" })).await, "session_not_found");
    room.close().await;
}

/// S0-33: `_session_id` never reaches a tool, and what a tool does not know is told.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_arguments_are_told_and_the_session_hint_is_not() {
    let room = Room::new();
    let hub = room.hub(None).await;
    let arguments = json!({ "action": "create", "title": "x", "titel": "y", "_session_id": hub });
    let made = room.call(hub, "memory_plan", arguments).await;
    assert_eq!(made["ignored_arguments"], json!(["titel"]));
    room.close().await;
}

/// S0-B02: which calls do what a stop asks for.
#[test]
fn compliance_is_told_from_the_call() {
    let told = |tool: &str, action: Value| compliance(tool, &json!({ "action": action }));
    assert_eq!(told("memory_agent", json!("handoff")), Some(Compliance::HandOff));
    assert_eq!(told("memory_agent", json!("complete")), Some(Compliance::Complete));
    assert_eq!(told("memory_agent", json!("ack")), Some(Compliance::Acknowledge));
    for (tool, action) in
        [("memory_agent", json!("init")), ("memory_steps", json!("complete")), ("x", json!("ack"))]
    {
        assert_eq!(told(tool, action), None);
    }
    assert_eq!(told("memory_agent", json!(7)), None);
    assert_eq!(compliance("memory_agent", &json!([])), None);
}
