//! Which flow a command is about, when none is named.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{FlowList, FlowView};
use lanyard_client::Route;
use lanyard_core::flow::FlowState;

use crate::client::Client;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The flow: its id [default: the only one that is open]
    #[arg(value_name = "FLOW", value_parser = NonEmptyStringValueParser::new())]
    flow: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Ended {
    /// The flow: its id [default: the newest]
    #[arg(value_name = "FLOW", value_parser = NonEmptyStringValueParser::new())]
    flow: Option<String>,
}

impl Target {
    pub(super) async fn find(&self, client: &mut Client<'_>) -> Result<String, Failure> {
        if let Some(flow) = &self.flow {
            return Ok(flow.clone());
        }
        let open: FlowList = client.get(&Route::to(&["flows"]).with("open", Some(true))).await?;
        match open.flows.as_slice() {
            [only] => Ok(only.flow.id.to_string()),
            [] => Err(Failure::local(
                "no_flow",
                "no flow is open",
                "begin one with `lanyard flow run PLAN.md`; `lanyard flow ls --all` lists those that have ended",
            )),
            several => {
                let title = format!("{} flows are open", several.len());
                Err(Failure::local("flow_ambiguous", title, "name one; `lanyard flow ls` lists them"))
            }
        }
    }
}

impl Ended {
    /// The one that was named, else the newest, open or not.
    pub(super) async fn newest(&self, client: &mut Client<'_>) -> Result<String, Failure> {
        if let Some(flow) = &self.flow {
            return Ok(flow.clone());
        }
        let newest = newest(client, None).await?;
        let none =
            || Failure::local("no_flow", "there is no flow", "begin one with `lanyard flow run PLAN.md`");
        newest.map(|view| view.flow.id.to_string()).ok_or_else(none)
    }

    /// The one that was named, else the newest that has ended, when that was aborted.
    pub(super) async fn aborted(&self, client: &mut Client<'_>) -> Result<String, Failure> {
        if let Some(flow) = &self.flow {
            return Ok(flow.clone());
        }
        let newest = newest(client, Some(false)).await?;
        let aborted = newest.filter(|view| view.flow.state == FlowState::Aborted);
        aborted.map(|view| view.flow.id.to_string()).ok_or_else(|| {
            let title = "the flow that ended last was not aborted";
            Failure::local("no_flow", title, "name one; `lanyard flow ls --all` lists them")
        })
    }
}

async fn newest(client: &mut Client<'_>, open: Option<bool>) -> Result<Option<FlowView>, Failure> {
    let route = Route::to(&["flows"]).with("open", open).with("limit", Some(1));
    let list: FlowList = client.get(&route).await?;
    Ok(list.flows.into_iter().next())
}
