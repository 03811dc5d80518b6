//! The embeddings endpoint: texts in, vectors out. It may be away, slow or mad; that costs the vectors and nothing else.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use lanyard_api::agents::settings::McpHttp;
use lanyard_api::config::Embeddings;
use lanyard_core::text::cut;
use serde::Deserialize;
use serde_json::json;

use lanyard_gateway::http_endpoint::HttpEndpoint;

/// Numbers one vector may have.
const NUMBERS_MAX: usize = 8_192;
/// Bytes of an answer: 32 vectors of that size, as text.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Characters of a text that are sent. Models cut off longer ones themselves, or refuse them.
const TEXT_CHARS_MAX: usize = 8_000;
/// Characters of what the endpoint says about its failure.
const SAID_CHARS_MAX: usize = 200;

#[derive(Debug)]
pub(crate) struct Embedder {
    upstream: HttpEndpoint,
    model: String,
    patience: Duration,
    /// What was wrong the last time, if anything.
    trouble: Mutex<Option<String>>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Numbered>,
}

#[derive(Deserialize)]
struct Numbered {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Embedder {
    /// Nothing where no endpoint is named.
    pub(super) fn new(settings: &Embeddings) -> Result<Option<Self>, String> {
        if settings.url.trim().is_empty() {
            return Ok(None);
        }
        if settings.model.trim().is_empty() {
            return Err("`url` names an endpoint and `model` no model".to_owned());
        }
        let mut headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        if let Some(path) = &settings.key_file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read `key_file` {}: {error}", path.display()))?;
            let key = text.lines().next().unwrap_or_default().trim();
            headers.insert("authorization".to_owned(), format!("Bearer {key}"));
        }
        let upstream = HttpEndpoint::new(&McpHttp {
            url: settings.url.clone(),
            headers,
            timeout_ms: None,
            ca_file: settings.ca_file.clone(),
            once: Vec::new(),
        })?;
        let patience = Duration::from_millis(settings.timeout_ms.max(1));
        Ok(Some(Self { upstream, model: settings.model.clone(), patience, trouble: Mutex::default() }))
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// What was wrong the last time, if anything.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    /// A vector for each text, in their order; or a sentence that goes on after "the embeddings endpoint".
    pub(super) async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let answer = tokio::time::timeout(self.patience, self.ask(texts)).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("gave no answer within {:?}", self.patience)));
        let mut trouble = self.trouble.lock();
        if let Err(why) = &answer
            && trouble.as_ref() != Some(why)
        {
            tracing::warn!(why, "the embeddings endpoint is of no use; memory goes on without vectors");
        }
        *trouble = answer.as_ref().err().cloned();
        answer
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let input: Vec<&str> = texts.iter().map(|text| cut(text, TEXT_CHARS_MAX).0).collect();
        let body = json!({ "model": self.model, "input": input }).to_string();
        let (status, answer) = self.upstream.post(Bytes::from(body), self.patience, ANSWER_BYTES_MAX).await?;
        if status != 200 {
            let said = String::from_utf8_lossy(&answer);
            return Err(format!("answered with status {status}: {}", cut(said.trim(), SAID_CHARS_MAX).0));
        }
        read(&answer, texts.len())
    }
}

/// Takes an answer apart and believes nothing of it unseen.
fn read(answer: &[u8], wanted: usize) -> Result<Vec<Vec<f32>>, String> {
    let Answer { mut data } = serde_json::from_slice(answer)
        .map_err(|error| format!("says nothing that can be understood: {error}"))?;
    if data.len() != wanted {
        return Err(format!("answered {} texts with {} vectors", wanted, data.len()));
    }
    if data.iter().all(|one| one.index.is_some()) {
        data.sort_by_key(|one| one.index);
    }
    let length = data.first().map_or(0, |one| one.embedding.len());
    if length == 0 || length > NUMBERS_MAX {
        return Err(format!("answered with a vector of {length} numbers"));
    }
    if data.iter().any(|one| one.embedding.len() != length) {
        return Err("answered with vectors of different lengths".to_owned());
    }
    if data.iter().flat_map(|one| &one.embedding).any(|number| !number.is_finite()) {
        return Err("answered with numbers that are none".to_owned());
    }
    Ok(data.into_iter().map(|one| one.embedding).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_only_when_it_makes_sense() {
        let good = br#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}]}"#;
        assert_eq!(read(good, 2).unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
        for (answer, wanted) in [
            (&b"no json"[..], 1),
            (br"{}", 1),
            (br#"{"data":[]}"#, 1),
            (br#"{"data":[{"embedding":[]}]}"#, 1),
            (br#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#, 2),
            (br#"{"data":[{"embedding":[1e300]}]}"#, 1),
            (br#"{"data":[{"embedding":["a"]}]}"#, 1),
        ] {
            assert!(read(answer, wanted).is_err(), "{}", String::from_utf8_lossy(answer));
        }
    }

    #[test]
    fn without_an_address_there_is_none_and_without_a_model_it_is_a_mistake() {
        assert!(Embedder::new(&Embeddings::default()).unwrap().is_none());
        let mut settings = Embeddings { url: "http://127.0.0.1:1/v1".to_owned(), ..Embeddings::default() };
        assert!(Embedder::new(&settings).unwrap_err().contains("model"));
        settings.model = "m".to_owned();
        settings.url = "ftp://x".to_owned();
        assert!(Embedder::new(&settings).is_err());
    }
}
