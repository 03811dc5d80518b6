//! A small MCP server on stdio: `echo` says what it was given, `slow` takes its time or waits for a file, `structured`
//! answers twice, `fail` fails, `exit` ends the server.

use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// The revision of the protocol that is spoken unless the client asks for another.
const PROTOCOL: &str = "2025-11-25";

/// How often a file that a call waits for is looked for: five minutes in all.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 15_000;

/// Serves until stdin ends; answers the exit code.
pub fn run(heard: Option<&Path>) -> std::io::Result<u8> {
    let mut heard = heard.map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if let Some(file) = &mut heard {
            writeln!(file, "{line}")?;
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            say(&json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "no JSON" } }))?;
            continue;
        };
        if message["method"] == "tools/call" && message["params"]["name"] == "exit" {
            let code = message["params"]["arguments"]["code"].as_u64().unwrap_or(0);
            return Ok(u8::try_from(code).unwrap_or(1));
        }
        if message["method"] == "tools/call" && message["params"]["name"] == "slow" {
            // Beside the others: several calls can be under way.
            std::thread::spawn(move || {
                let arguments = &message["params"]["arguments"];
                std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or(0)));
                wait_for(arguments["file"].as_str());
                let _ = answer(&message);
            });
            continue;
        }
        answer(&message)?;
    }
    Ok(0)
}

/// Waits until the file is there, within a bound.
fn wait_for(file: Option<&str>) {
    let Some(file) = file.map(Path::new) else { return };
    for _ in 0..LOOKS_MAX {
        if file.exists() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn answer(message: &Value) -> std::io::Result<()> {
    let id = &message["id"];
    if id.is_null() {
        return Ok(());
    }
    let Some(result) = result(message) else {
        let error = json!({ "code": -32601, "message": "there is no such method or tool" });
        return say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    };
    say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn result(message: &Value) -> Option<Value> {
    match message["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": message["params"]["protocolVersion"].as_str().unwrap_or(PROTOCOL),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "lanyard-scripted-mcp", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Some(json!({})),
        "tools/list" => {
            let open = json!({ "type": "object" });
            let tools =
                ["echo", "slow", "fail", "exit"].map(|name| json!({ "name": name, "inputSchema": open }));
            let mut tools = tools.to_vec();
            tools.push(json!({ "name": "structured", "inputSchema": open, "outputSchema": open }));
            Some(json!({ "tools": tools }))
        }
        "tools/call" => {
            let arguments = message["params"].get("arguments").cloned().unwrap_or_default();
            let text = arguments["text"].as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            let content = json!([{ "type": "text", "text": text }]);
            match message["params"]["name"].as_str()? {
                "echo" | "slow" => Some(json!({ "content": content })),
                "structured" => Some(json!({ "content": content, "structuredContent": arguments })),
                "fail" => Some(json!({ "content": content, "isError": true })),
                _ => None,
            }
        }
        _ => None,
    }
}

fn say(message: &Value) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}
