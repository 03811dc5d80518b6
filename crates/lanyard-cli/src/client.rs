//! Requests of commands: the manners of a command line on top of the client crate. It starts a daemon where there is none,
//! repeats what a broken connection left open, and looks up names.

pub(crate) mod attached;
mod name_book;

pub(crate) use name_book::listed;

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use lanyard_client::names::NameMeaning;
use lanyard_client::{
    ANSWER_TIMEOUT, ApiRequest, ClientError, DaemonConnection, HttpAnswer, Route, SIGN_OF_LIFE_TIMEOUT,
    encode, random_key,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::failure::Failure;
use crate::tui::message::{Call, Method as Verb};
use name_book::with_nearest;

pub(crate) struct Client<'a> {
    context: &'a Context,
    connection: DaemonConnection,
    if_gone: IfGone,
}

/// What to do when no daemon is there, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfGone {
    Start,
    /// For commands about the daemon itself.
    Leave,
}

impl<'a> Client<'a> {
    pub(crate) fn new(context: &'a Context, connection: DaemonConnection, if_gone: IfGone) -> Self {
        Self { context, connection, if_gone }
    }

    /// Whether it acts as the session this command runs inside of.
    pub(crate) fn is_session(&self) -> bool {
        self.context.given.is_some()
    }

    pub(crate) async fn get<T: DeserializeOwned>(&mut self, route: &Route) -> Result<T, Failure> {
        Ok(self.ask(ApiRequest::question(route, Some(ANSWER_TIMEOUT))).await?.json()?)
    }

    /// An answer that is no JSON.
    pub(crate) async fn get_bytes(&mut self, route: &Route) -> Result<Bytes, Failure> {
        Ok(self.ask(ApiRequest::question(route, Some(ANSWER_TIMEOUT))).await?.body)
    }

    /// A question that may take as long as it takes.
    pub(crate) async fn get_patiently<T: DeserializeOwned>(&mut self, route: &Route) -> Result<T, Failure> {
        Ok(self.ask(ApiRequest::question(route, None)).await?.json()?)
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        Ok(self.change(Method::POST, route, Some(encode(body)?), Some(ANSWER_TIMEOUT)).await?.json()?)
    }

    /// One of several changes a command makes: each has a key of its own, made from the one the user gave.
    pub(crate) async fn post_part<T: DeserializeOwned>(
        &mut self,
        part: &str,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.part(part, route, body, Some(ANSWER_TIMEOUT)).await
    }

    /// The same for changes that may take long.
    pub(crate) async fn post_part_patiently<T: DeserializeOwned>(
        &mut self,
        part: &str,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.part(part, route, body, None).await
    }

    async fn part<T: DeserializeOwned>(
        &mut self,
        part: &str,
        route: &Route,
        body: &impl Serialize,
        within: Option<Duration>,
    ) -> Result<T, Failure> {
        let key = match &self.context.key {
            Some(key) => format!("{key}.{part}"),
            None => self.key()?,
        };
        let body = Some(encode(body)?);
        Ok(self.ask(ApiRequest::change(Method::POST, route, body, Some(key), within)).await?.json()?)
    }

    /// A change that does no harm when it is made twice or not at all: no outcome is kept for a repeat.
    pub(crate) async fn post_unkept<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let (body, within) = (Some(encode(body)?), Some(ANSWER_TIMEOUT));
        Ok(self.ask(ApiRequest::change(Method::POST, route, body, None, within)).await?.json()?)
    }

    /// Sends content as it is. The same content again is the same attachment, so a repeat needs no key.
    pub(crate) async fn upload<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        content: Bytes,
        media_type: Option<&str>,
    ) -> Result<T, Failure> {
        let media_type = Some(media_type.unwrap_or("application/octet-stream"));
        let asked = ApiRequest::change(Method::POST, route, Some(content), None, Some(ANSWER_TIMEOUT));
        Ok(self.ask(ApiRequest { media_type, ..asked }).await?.json()?)
    }

    pub(crate) async fn post_patiently<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        Ok(self.change(Method::POST, route, Some(encode(body)?), None).await?.json()?)
    }

    pub(crate) async fn patch<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        Ok(self.change(Method::PATCH, route, Some(encode(body)?), Some(ANSWER_TIMEOUT)).await?.json()?)
    }

    pub(crate) async fn delete<T: DeserializeOwned>(
        &mut self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        Ok(self.change(Method::DELETE, route, Some(encode(body)?), Some(ANSWER_TIMEOUT)).await?.json()?)
    }

    /// Deletes what answers with nothing.
    pub(crate) async fn remove(&mut self, route: &Route) -> Result<(), Failure> {
        self.change(Method::DELETE, route, None, Some(ANSWER_TIMEOUT)).await.map(drop)
    }

    /// Asks the daemon to shut down. Not repeated: a broken connection is what was asked for.
    pub(crate) async fn shut_down(mut self) -> Result<(), Failure> {
        let route = Route::to(&["shutdown"]);
        let body = Some(Bytes::from_static(b"{}"));
        let key = Some(self.key()?);
        let request = ApiRequest::change(Method::POST, &route, body, key, Some(SIGN_OF_LIFE_TIMEOUT));
        match self.connection.attempt(&request).await {
            Ok(answer) => Ok(answer.accepted().map(drop)?),
            Err(ClientError::Broken) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn change(
        &mut self,
        method: Method,
        route: &Route,
        body: Option<Bytes>,
        within: Option<Duration>,
    ) -> Result<HttpAnswer, Failure> {
        let key = Some(self.key()?);
        self.ask(ApiRequest::change(method, route, body, key, within)).await
    }

    /// The key the user gave, or a fresh one.
    fn key(&self) -> Result<String, Failure> {
        if let Some(key) = &self.context.key {
            return Ok(key.clone());
        }
        Ok(random_key("cli")?)
    }

    /// Sends the request, with the id in the place of a name.
    async fn ask(&mut self, asked: ApiRequest<'_>) -> Result<HttpAnswer, Failure> {
        let (route, meaning) = self.resolve(asked.route).await?;
        let answer = self.ask_twice(ApiRequest { route: &route, ..asked }).await;
        answer.map_err(|failure| match &meaning {
            Some(meaning) => with_nearest(failure, meaning, self.context.out.columns),
            None => failure,
        })
    }

    /// The address with the id that its name means.
    async fn resolve(&mut self, route: &Route) -> Result<(Route, Option<NameMeaning>), Failure> {
        let Some(wanted) = route.wanted() else { return Ok((route.clone(), None)) };
        let meaning = self.meaning(wanted).await?;
        let route = match &meaning {
            NameMeaning::Id(id) => route.resolved(id),
            NameMeaning::Nothing(..) => route.clone(),
        };
        Ok((route, Some(meaning)))
    }

    /// Sends the request, and once more if the connection breaks before there is an answer: the key makes sure that a
    /// change is made once, whichever of the two arrived.
    async fn ask_twice(&mut self, asked: ApiRequest<'_>) -> Result<HttpAnswer, Failure> {
        match self.connection.attempt(&asked).await {
            Ok(answer) => return Ok(answer.accepted()?),
            Err(ClientError::Broken) => {}
            Err(error) => return Err(unanswered(error, asked.key.as_deref())),
        }
        let how = if asked.key.is_some() { "asking again with the same key" } else { "asking again" };
        self.context.out.note(&format!("the connection broke before an answer; {how}"));
        self.connection = match self.context.connect_again(self.if_gone).await {
            Ok(connection) => connection,
            Err(failure) if asked.key.is_none() => return Err(failure),
            Err(_) => return Err(unanswered(ClientError::Broken, asked.key.as_deref())),
        };
        match self.connection.attempt(&asked).await {
            Ok(answer) => Ok(answer.accepted()?),
            Err(error) => Err(unanswered(error, asked.key.as_deref())),
        }
    }

    /// Carries out a request once. A change has a key of its own; an answer that did not come is told as such.
    pub(crate) async fn carry_out(&mut self, call: &Call) -> Result<Value, Failure> {
        let (method, body, key) = match call.method {
            Verb::Get => (Method::GET, None, None),
            Verb::Post => (Method::POST, Some(encode(&call.body)?), Some(self.key()?)),
            Verb::Patch => (Method::PATCH, Some(encode(&call.body)?), Some(self.key()?)),
            Verb::Delete => (Method::DELETE, Some(encode(&call.body)?), Some(self.key()?)),
        };
        let change = ApiRequest::change(method, &call.route, body, key, Some(ANSWER_TIMEOUT));
        let answer = self.connection.attempt(&ApiRequest { writer: call.writer, ..change }).await?;
        Ok(answer.accepted()?.json()?)
    }
}

/// Nothing with effects is repeated behind anyone's back: an error says what is not known, and how to find out.
fn unanswered(error: ClientError, key: Option<&str>) -> Failure {
    let is_open = error.is_passing();
    let failure = Failure::from(error);
    match key.filter(|_| is_open) {
        Some(key) => failure.advising(format!(
            "run the same command again with `--key {key}`: the change is then made once, whether it was made or not"
        )),
        None => failure,
    }
}
