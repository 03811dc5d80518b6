//! The embeddings endpoint: helpful, away, hanging and mad. Only the vectors depend on it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::kit::{Stage, until};

#[derive(Clone, Copy)]
enum Mood {
    Helpful,
    Hanging,
    Broken,
    Mad,
}

/// An endpoint on loopback; the second number counts what it was asked.
fn endpoint(mood: Mood) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = counted.clone();
            std::thread::spawn(move || while answer(&stream, mood, &counted).is_some() {});
        }
    });
    (address, asked)
}

fn answer(stream: &TcpStream, mood: Mood, asked: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    asked.fetch_add(1, Ordering::SeqCst);
    let (status, said) = match mood {
        Mood::Helpful => ("200 OK", helpful(&serde_json::from_slice(&body).ok()?)),
        Mood::Hanging => {
            // sleep: it is the endpoint's part to say nothing, for longer than anybody waits.
            std::thread::sleep(std::time::Duration::from_mins(1));
            return None;
        }
        Mood::Broken => ("500 Internal Server Error", "out of memory".to_owned()),
        Mood::Mad => ("200 OK", "{\"data\":[{\"embedding\":[]}]}".to_owned()),
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", said.len());
    let mut stream = stream;
    stream.write_all((head + &said).as_bytes()).ok()
}

/// What is about animals is alike, and what is about anything else is not.
fn helpful(request: &Value) -> String {
    assert_eq!(request["model"], "toy");
    let vector = |text: &str| {
        let animal = ["cat", "kitten", "feline"].iter().any(|word| text.contains(word));
        if animal { json!([1.0, 0.1]) } else { json!([-0.1, 1.0]) }
    };
    let inputs = request["input"].as_array().unwrap();
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "index": index, "embedding": vector(text.as_str().unwrap()) }))
        .collect();
    json!({ "data": data }).to_string()
}

fn settings(url: &str, timeout_ms: u32) -> String {
    format!("[memory.embeddings]\nurl = \"{url}\"\nmodel = \"toy\"\ntimeout_ms = {timeout_ms}")
}

/// S3-46: without settings there is no endpoint: nothing is asked, and words are found all the same.
#[test]
fn the_endpoint_is_off_unless_it_is_configured() {
    let stage = Stage::new("");
    stage.ok("POST", "/memory", &json!({ "text": "the cat sleeps on the server" }));
    assert_eq!(stage.get("/memory?query=cat")["found_by"], json!(["words"]));
    let status = stage.get("/memory/status");
    assert!(status["embeddings"].is_null() && status["embeddings_trouble"].is_null(), "{status}");
}

#[test]
fn meaning_finds_what_words_do_not() {
    let (url, asked) = endpoint(Mood::Helpful);
    let stage = Stage::new(&settings(&url, 10_000));
    for text in ["the cat sleeps on the server", "deploy on fridays", "a server named feline"] {
        stage.ok("POST", "/memory", &json!({ "text": text }));
    }
    let find = |query: &str| stage.get(&format!("/memory?query={query}"));
    until("vectors", || {
        let found = find("kitten");
        assert!(found["warnings"].is_null(), "{found}");
        found["entries"].as_array().unwrap().len() == 2
    });
    assert_eq!(find("kitten")["found_by"], json!(["vectors"]));
    let both = find("feline");
    assert_eq!(both["found_by"], json!(["words", "vectors"]));
    assert_eq!(both["entries"][0]["text"], "a server named feline", "what both find is first");
    assert!(asked.load(Ordering::SeqCst) > 0);
    assert_eq!(stage.get("/memory/status")["embeddings"], "toy");
}

#[test]
fn an_endpoint_that_misbehaves_costs_the_vectors_and_is_told() {
    for (mood, says) in [
        (Some(Mood::Hanging), "no answer"),
        (Some(Mood::Broken), "500"),
        (Some(Mood::Mad), "0 numbers"),
        (None, "cannot be reached"),
    ] {
        let url = match mood {
            Some(mood) => endpoint(mood).0,
            None => "http://127.0.0.1:9/v1/embeddings".to_owned(),
        };
        let stage = Stage::new(&settings(&url, 300));
        stage.ok("POST", "/memory", &json!({ "text": "The server listens on port 8080" }));
        let found = stage.get("/memory?query=port");
        assert_eq!(found["entries"].as_array().unwrap().len(), 1, "{says}");
        assert_eq!(found["found_by"], json!(["words"]), "{says}");
        let warning = found["warnings"][0].as_str().unwrap_or_default();
        assert!(warning.contains("words alone") && warning.contains(says), "{warning}");
        let trouble = stage.get("/memory/status")["embeddings_trouble"].clone();
        assert!(trouble.as_str().is_some_and(|text| text.contains(says)), "{trouble}");
        let told = stage.daemon.lanyard(&["memory", "search", "port"]);
        let stderr = String::from_utf8(told.stderr).unwrap();
        assert!(told.status.success() && stderr.contains("warning: found by words alone"), "{stderr}");
    }
}
